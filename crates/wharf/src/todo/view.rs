//! Formats todos for callers: as JSON text, and as the same structured content.

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Value, json, value::RawValue};
use wharf_mcp::{Raw, RpcError};
use wharf_store::{FoundTodos, Todo};

/// JSON form of one todo.
#[derive(Serialize)]
pub(super) struct TodoView<'a> {
    id: i64,
    title: &'a str,
    description: Option<&'a str>,
    status: &'static str,
    priority: Option<i64>,
    tags: &'a [String],
    due_date: Option<&'a str>,
    #[serde(serialize_with = "time")]
    created_at: i64,
    #[serde(serialize_with = "time")]
    updated_at: i64,
}

/// JSON form of a list of todos.
#[derive(Serialize)]
pub(super) struct TodosView<'a> {
    todos: Vec<TodoView<'a>>,
    count: usize,
    truncated: bool,
}

#[derive(Serialize)]
struct ToolResultView<'a> {
    content: [TextContent<'a>; 1],
    #[serde(rename = "structuredContent")]
    structured: &'a RawValue,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl<'a> From<&'a Todo> for TodoView<'a> {
    fn from(todo: &'a Todo) -> TodoView<'a> {
        let Todo { id, title, description, status, priority, tags, due_date, created_at, updated_at } = todo;
        TodoView {
            id: *id,
            title,
            description: description.as_deref(),
            status: status.as_str(),
            priority: *priority,
            tags,
            due_date: due_date.as_deref(),
            created_at: *created_at,
            updated_at: *updated_at,
        }
    }
}

impl<'a> From<&'a FoundTodos> for TodosView<'a> {
    fn from(found: &'a FoundTodos) -> TodosView<'a> {
        let todos: Vec<TodoView<'_>> = found.todos.iter().map(TodoView::from).collect();
        TodosView { count: todos.len(), todos, truncated: found.truncated }
    }
}

/// Builds the result of a successful call.
pub(super) fn tool_result(value: &impl Serialize) -> Result<Raw, RpcError> {
    let text = text(value)?;
    let structured = RawValue::from_string(text.clone()).map_err(|it| serialization_error(&it))?;
    let content = [TextContent { r#type: "text", text: &text }];
    Raw::of(&ToolResultView { content, structured: &structured }).map_err(|it| serialization_error(&it))
}

/// Builds the result of a failed call: a tool error with the reason.
pub(super) fn tool_error(what: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": what }], "isError": true })
}

pub(super) fn text(value: &impl Serialize) -> Result<String, RpcError> {
    serde_json::to_string(value).map_err(|it| serialization_error(&it))
}

fn serialization_error(error: &serde_json::Error) -> RpcError {
    RpcError::new(RpcError::INTERNAL, format!("the result cannot be serialized: {error}"))
}

fn time<S: Serializer>(micros: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Timestamp::from_microsecond(*micros).unwrap_or_default())
}
