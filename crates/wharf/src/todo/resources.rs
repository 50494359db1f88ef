//! Exposes todos as resources: one URI for all of them, and one for each.

use super::{
    TodoState,
    calls::MAX_RESULT,
    view::{self, TodoView, TodosView},
};
use serde_json::{Value, json};
use wharf_mcp::{Raw, RpcError};
use wharf_store::{Bounds, Status, StoreError, TodoFilter};

pub(super) const ALL: &str = "todo://all";

/// Maximum number and size of the todos in the list: the newest active ones. Every other todo has a URI too.
const MAX_LISTED: Bounds = Bounds { rows: 100, bytes: 1 << 20 };

pub(super) fn uri(id: i64) -> String {
    format!("todo://{id}")
}

pub(super) async fn list(state: &TodoState) -> Result<Raw, RpcError> {
    let found = state.store.newest_todos(Status::Active, MAX_LISTED).await.map_err(failed)?;
    let all = json!({ "uri": ALL, "name": "all", "title": "All todos", "description": "All todos, as JSON", "mimeType": "application/json" });
    let each = found.todos.iter().map(|todo| {
        let (uri, title) = (uri(todo.id), &todo.title);
        json!({ "uri": uri, "name": title, "description": title, "mimeType": "application/json" })
    });
    let resources: Vec<Value> = std::iter::once(all).chain(each).collect();
    Ok(json!({ "resources": resources }).into())
}

pub(super) fn templates() -> Raw {
    let one = json!({ "uriTemplate": "todo://{id}", "name": "todo", "title": "One todo", "description": "One todo, as JSON", "mimeType": "application/json" });
    json!({ "resourceTemplates": [one] }).into()
}

pub(super) async fn read(state: &TodoState, params: &Value) -> Result<Raw, RpcError> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let text = match uri.strip_prefix("todo://") {
        Some("all") => {
            let found = state.store.list_todos(&TodoFilter::default(), MAX_RESULT).await.map_err(failed)?;
            view::text(&TodosView::from(&found))?
        }
        Some(id) => {
            let id = id.parse().map_err(|_| unknown(uri))?;
            let todo = state.store.todo(id).await.map_err(failed)?.ok_or_else(|| unknown(uri))?;
            view::text(&TodoView::from(&todo))?
        }
        None => return Err(unknown(uri)),
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": "application/json", "text": text }] }).into())
}

fn unknown(uri: &str) -> RpcError {
    let data = Some(json!({ "uri": uri }).into());
    RpcError { data, ..RpcError::new(RpcError::INVALID_PARAMS, format!("resource not found: {uri}")) }
}

pub(super) fn failed(error: StoreError) -> RpcError {
    RpcError::new(RpcError::INTERNAL, error.to_string())
}
