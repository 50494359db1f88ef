//! Implements the five tools.

use super::{
    Desk,
    fields::Fields,
    view::{self, TodoView, TodosView},
};
use serde_json::{Value, json};
use wharf_mcp::{Raw, RpcError};
use wharf_store::{Bounds, NewTodo, StoreError, TodoChange, TodoFilter};

/// Maximum size of a result. It contains every todo twice (as text and structured) and must fit into one frame.
pub(super) const ANSWER: Bounds = Bounds { rows: 10_000, bytes: 2 << 20 };

/// Reason why a call failed.
enum Refusal {
    /// The arguments are invalid, or the todo does not exist.
    Asked(String),
    /// The database failed.
    Store(StoreError),
    /// A JSON-RPC error.
    Rpc(RpcError),
}

/// Calls a tool. An unknown tool is a JSON-RPC error; invalid arguments and database failures are tool errors.
pub(super) async fn call(desk: &Desk, params: Value) -> Result<Raw, RpcError> {
    let name = params["name"].as_str().unwrap_or_default();
    let fields = Fields::of(params.get("arguments").cloned());
    let answer = match name {
        "create_todo" => create(desk, fields).await,
        "list_todos" => list(desk, fields).await,
        "update_todo" => update(desk, fields.also_known_as("todo_id", "id")).await,
        "search_todos" => search(desk, fields.also_known_as("query", "keyword")).await,
        "delete_todo" => delete(desk, fields.also_known_as("todo_id", "id")).await,
        _ => return Err(RpcError::new(RpcError::INVALID_PARAMS, format!("unknown tool: {name}"))),
    };
    match answer {
        Ok(answer) => Ok(answer),
        Err(Refusal::Asked(what)) => Ok(view::tool_error(&what).into()),
        Err(Refusal::Store(error)) => Ok(view::tool_error(&error.to_string()).into()),
        Err(Refusal::Rpc(error)) => Err(error),
    }
}

async fn create(desk: &Desk, mut fields: Fields) -> Result<Raw, Refusal> {
    let new = NewTodo {
        title: fields.title("title"),
        description: fields.description().flatten(),
        priority: fields.priority(),
        tags: fields.tags().unwrap_or_default(),
        due_date: fields.date("due_date"),
    };
    fields.finish("create_todo")?;
    let todo = desk.store.create_todo(&new).await?;
    desk.news.came_or_went(todo.id);
    Ok(view::answer(&TodoView::from(&todo))?)
}

async fn list(desk: &Desk, mut fields: Fields) -> Result<Raw, Refusal> {
    let filter = TodoFilter {
        status: fields.status(),
        priority: fields.priority(),
        tags: fields.tags().unwrap_or_default(),
        due_before: fields.date("due_date_before"),
        due_after: fields.date("due_date_after"),
    };
    fields.finish("list_todos")?;
    let found = desk.store.list_todos(&filter, ANSWER).await?;
    Ok(view::answer(&TodosView::from(&found))?)
}

async fn update(desk: &Desk, mut fields: Fields) -> Result<Raw, Refusal> {
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
        return Err(Refusal::Asked(what.to_owned()));
    }
    let todo = desk.store.update_todo(id, &change).await?.ok_or_else(|| unknown(id))?;
    // The list of resources shows the titles of active todos, so only these changes affect it.
    match change.title.is_some() || change.status.is_some() {
        true => desk.news.came_or_went(id),
        false => desk.news.changed(id),
    }
    Ok(view::answer(&TodoView::from(&todo))?)
}

async fn search(desk: &Desk, mut fields: Fields) -> Result<Raw, Refusal> {
    let query = fields.title("query");
    let filter = TodoFilter { status: fields.status(), priority: fields.priority(), ..TodoFilter::default() };
    fields.finish("search_todos")?;
    let found = desk.store.search_todos(&query, &filter, ANSWER).await?;
    Ok(view::answer(&TodosView::from(&found))?)
}

async fn delete(desk: &Desk, mut fields: Fields) -> Result<Raw, Refusal> {
    let id = fields.id();
    fields.finish("delete_todo")?;
    let todo = desk.store.delete_todo(id).await?.ok_or_else(|| unknown(id))?;
    desk.news.came_or_went(id);
    Ok(view::answer(&json!({ "id": id, "title": todo.title, "deleted": true }))?)
}

fn unknown(id: i64) -> Refusal {
    Refusal::Asked(format!("there is no todo with `todo_id` {id}"))
}

impl From<String> for Refusal {
    fn from(what: String) -> Refusal {
        Refusal::Asked(what)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::Store(error)
    }
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Refusal {
        Refusal::Rpc(error)
    }
}
