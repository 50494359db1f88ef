//! Implements the five tools.

use super::{
    TodoState,
    fields::ArgumentFields,
    view::{self, TodoView, TodosView},
};
use serde_json::{Value, json};
use wharf_mcp::{Raw, RpcError};
use wharf_store::{Bounds, NewTodo, StoreError, TodoChange, TodoFilter};

/// Maximum size of a result. It contains every todo twice (as text and structured) and must fit into one frame.
pub(super) const MAX_RESULT: Bounds = Bounds { rows: 10_000, bytes: 2 << 20 };

/// Reason why a call failed.
enum TodoCallError {
    /// The arguments are invalid, or the todo does not exist.
    Invalid(String),
    /// The database failed.
    Store(StoreError),
    /// A JSON-RPC error.
    Rpc(RpcError),
}

/// Calls a tool. An unknown tool is a JSON-RPC error; invalid arguments and database failures are tool errors.
pub(super) async fn call(state: &TodoState, params: Value) -> Result<Raw, RpcError> {
    let name = params["name"].as_str().unwrap_or_default();
    let fields = ArgumentFields::of(params.get("arguments").cloned());
    let tool_result = match name {
        "create_todo" => create(state, fields).await,
        "list_todos" => list(state, fields).await,
        "update_todo" => update(state, fields.accept_alias("todo_id", "id")).await,
        "search_todos" => search(state, fields.accept_alias("query", "keyword")).await,
        "delete_todo" => delete(state, fields.accept_alias("todo_id", "id")).await,
        _ => return Err(RpcError::new(RpcError::INVALID_PARAMS, format!("unknown tool: {name}"))),
    };
    match tool_result {
        Ok(tool_result) => Ok(tool_result),
        Err(TodoCallError::Invalid(what)) => Ok(view::tool_error(&what).into()),
        Err(TodoCallError::Store(error)) => Ok(view::tool_error(&error.to_string()).into()),
        Err(TodoCallError::Rpc(error)) => Err(error),
    }
}

async fn create(state: &TodoState, mut fields: ArgumentFields) -> Result<Raw, TodoCallError> {
    let new = NewTodo {
        title: fields.title("title"),
        description: fields.description().flatten(),
        priority: fields.priority(),
        tags: fields.tags().unwrap_or_default(),
        due_date: fields.date("due_date"),
    };
    fields.finish("create_todo")?;
    let todo = state.store.create_todo(&new).await?;
    state.news.list_changed(todo.id);
    Ok(view::tool_result(&TodoView::from(&todo))?)
}

async fn list(state: &TodoState, mut fields: ArgumentFields) -> Result<Raw, TodoCallError> {
    let filter = TodoFilter {
        status: fields.status(),
        priority: fields.priority(),
        tags: fields.tags().unwrap_or_default(),
        due_before: fields.date("due_date_before"),
        due_after: fields.date("due_date_after"),
    };
    fields.finish("list_todos")?;
    let found = state.store.list_todos(&filter, MAX_RESULT).await?;
    Ok(view::tool_result(&TodosView::from(&found))?)
}

async fn update(state: &TodoState, mut fields: ArgumentFields) -> Result<Raw, TodoCallError> {
    let id = fields.id();
    let change = TodoChange {
        title: fields.new_title("title"),
        description: fields.description(),
        status: fields.status(),
        priority: fields.priority(),
        tags: fields.tags(),
        due_date: fields.new_date("due_date"),
    };
    fields.finish("update_todo")?;
    if change.is_empty() {
        let what = "nothing to change: give at least one of `title`, `description`, `status`, `priority`, `tags`, `due_date`";
        return Err(TodoCallError::Invalid(what.to_owned()));
    }
    let todo = state.store.update_todo(id, &change).await?.ok_or_else(|| unknown(id))?;
    // The list of resources shows the titles of active todos, so only these changes affect it.
    match change.title.is_some() || change.status.is_some() {
        true => state.news.list_changed(id),
        false => state.news.changed(id),
    }
    Ok(view::tool_result(&TodoView::from(&todo))?)
}

async fn search(state: &TodoState, mut fields: ArgumentFields) -> Result<Raw, TodoCallError> {
    let query = fields.title("query");
    let filter = TodoFilter { status: fields.status(), priority: fields.priority(), ..TodoFilter::default() };
    fields.finish("search_todos")?;
    let found = state.store.search_todos(&query, &filter, MAX_RESULT).await?;
    Ok(view::tool_result(&TodosView::from(&found))?)
}

async fn delete(state: &TodoState, mut fields: ArgumentFields) -> Result<Raw, TodoCallError> {
    let id = fields.id();
    fields.finish("delete_todo")?;
    let todo = state.store.delete_todo(id).await?.ok_or_else(|| unknown(id))?;
    state.news.list_changed(id);
    Ok(view::tool_result(&json!({ "id": id, "title": todo.title, "deleted": true }))?)
}

fn unknown(id: i64) -> TodoCallError {
    TodoCallError::Invalid(format!("there is no todo with `todo_id` {id}"))
}

impl From<String> for TodoCallError {
    fn from(what: String) -> TodoCallError {
        TodoCallError::Invalid(what)
    }
}

impl From<StoreError> for TodoCallError {
    fn from(error: StoreError) -> TodoCallError {
        TodoCallError::Store(error)
    }
}

impl From<RpcError> for TodoCallError {
    fn from(error: RpcError) -> TodoCallError {
        TodoCallError::Rpc(error)
    }
}
