//! Implements the one prompt, which lists the open todos so that a model can plan a day.

use super::{TodoState, fields, resources};
use serde_json::{Value, json};
use wharf_mcp::{Raw, RpcError};
use wharf_store::{Bounds, Status, Todo, TodoFilter};

const NAME: &str = "plan_my_day";
const DESCRIPTION: &str =
    "Plans a day with the todos that are open: what is overdue, what is due, what is urgent";

/// Maximum number and size of the todos in the prompt.
const MAX_PROMPT: Bounds = Bounds { rows: 500, bytes: 256 << 10 };

pub(super) fn list() -> Raw {
    let date = json!({ "name": "date", "description": "The day, as YYYY-MM-DD; today, if none is given", "required": false });
    let prompt =
        json!({ "name": NAME, "title": "Plan my day", "description": DESCRIPTION, "arguments": [date] });
    json!({ "prompts": [prompt] }).into()
}

pub(super) async fn get(state: &TodoState, params: &Value) -> Result<Raw, RpcError> {
    let invalid = |what: String| RpcError::new(RpcError::INVALID_PARAMS, what);
    let name = params["name"].as_str().unwrap_or_default();
    if name != NAME {
        return Err(invalid(format!("unknown prompt: {name}")));
    }
    let day = match &params["arguments"]["date"] {
        Value::Null => state.today(),
        Value::String(text) if text.is_empty() => state.today(),
        given => given
            .as_str()
            .and_then(fields::date)
            .ok_or_else(|| invalid("`date` must be a date that exists, as YYYY-MM-DD".to_owned()))?,
    };
    let filter = TodoFilter { status: Some(Status::Active), ..TodoFilter::default() };
    let found = state.store.list_todos(&filter, MAX_PROMPT).await.map_err(resources::failed)?;
    let text = plan(found.todos, &day);
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": DESCRIPTION, "messages": [message] }).into())
}

/// Writes the prompt with the most pressing todos first: by due date, then by priority.
fn plan(mut todos: Vec<Todo>, day: &str) -> String {
    let late = |todo: &Todo| todo.due_date.clone().unwrap_or_else(|| "9999-99-99".to_owned());
    todos.sort_by_key(|todo| (late(todo), todo.priority.unwrap_or(i64::MAX), todo.id));
    let lines: Vec<String> = todos.iter().map(|todo| line(todo, day)).collect();
    let open = if lines.is_empty() { "(none)".to_owned() } else { lines.join("\n") };
    format!(
        "It is {day}. These are my open todos, the most pressing first:\n\n{open}\n\n\
         Plan my day: say what to do first and why, what can wait, and what you would ask me before you decide. \
         Refer to todos by their number."
    )
}

fn line(todo: &Todo, day: &str) -> String {
    let due = todo.due_date.as_deref().map(|due| match due {
        due if due < day => format!("overdue since {due}"),
        due if due == day => "due that day".to_owned(),
        due => format!("due {due}"),
    });
    let priority = todo.priority.map(|it| format!("priority {it} of 5"));
    let tags = (!todo.tags.is_empty()).then(|| todo.tags.join(", "));
    let facts: Vec<String> = [due, priority, tags].into_iter().flatten().collect();
    let title = todo.title.replace(['\n', '\r'], " ");
    match facts.is_empty() {
        true => format!("- #{} {title}", todo.id),
        false => format!("- #{} {title} ({})", todo.id, facts.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todos_are_sorted_by_due_date_and_priority() {
        let todo = |id, title: &str, due: Option<&str>, priority, tags: &[&str]| Todo {
            id,
            title: title.into(),
            description: None,
            status: Status::Active,
            priority,
            tags: tags.iter().map(|it| (*it).to_owned()).collect(),
            due_date: due.map(str::to_owned),
            created_at: 0,
            updated_at: 0,
        };
        let todos = vec![
            todo(1, "some day", None, None, &[]),
            todo(2, "urgent", None, Some(1), &["home"]),
            todo(3, "next week", Some("2026-01-08"), None, &[]),
            todo(4, "today\nor never", Some("2026-01-01"), Some(2), &[]),
            todo(5, "late", Some("2025-12-31"), None, &[]),
        ];
        let text = plan(todos, "2026-01-01");
        let expected = "It is 2026-01-01. These are my open todos, the most pressing first:\n\n\
            - #5 late (overdue since 2025-12-31)\n\
            - #4 today or never (due that day; priority 2 of 5)\n\
            - #3 next week (due 2026-01-08)\n\
            - #2 urgent (priority 1 of 5; home)\n\
            - #1 some day\n\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(plan(Vec::new(), "2026-01-01").contains("(none)"));
    }
}
