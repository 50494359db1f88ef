//! Tests each text form of a tool.

use super::*;
use serde_json::json;

fn tool() -> Value {
    json!({
        "name": "todo__create_todo",
        "wire_name": "create_todo",
        "source": "todo",
        "description": "Creates a todo.\n\nIt is active at first.",
        "input_schema": {
            "type": "object",
            "properties": {
                "priority": { "type": "integer", "minimum": 1, "maximum": 5, "default": 3 },
                "title": { "type": "string", "description": "What is to\nbe done" },
                "tags": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["title"],
        },
        "output_schema": { "properties": { "id": { "type": "integer" } }, "required": ["id"] },
        "annotations": { "readOnlyHint": false, "idempotentHint": true },
        "quarantined": null,
    })
}

#[test]
fn signature_lists_required_parameters_first() {
    assert_eq!(
        ToolView::of(&tool()).signature(),
        "todo__create_todo(title: string, priority?: 1..5, tags?: string[])"
    );
    assert_eq!(
        ToolView::of(&json!({ "name": "ping", "input_schema": { "type": "object" } })).signature(),
        "ping()"
    );
}

#[test]
fn a_long_signature_leaves_optional_parameters_out() {
    let properties: serde_json::Map<String, Value> =
        (0..100).map(|it| (format!("parameter_{it}"), json!({ "type": "string" }))).collect();
    let tool = json!({ "name": "t", "input_schema": { "properties": properties } });
    let signature = ToolView::of(&tool).signature();
    assert!(signature.len() < MAX_SIGNATURE + 40 && signature.ends_with(", …)"), "{signature}");
}

#[test]
fn entry_is_short_unless_long_is_set() {
    let view = ToolView::of(&tool());
    assert_eq!(
        view.entry(false),
        "  todo__create_todo(title: string, priority?: 1..5, tags?: string[])\n      Creates a todo.\n"
    );
    assert_eq!(
        view.entry(true),
        "  todo__create_todo(title: string, priority?: 1..5, tags?: string[])\n      Creates a todo.\n\n      \
         It is active at first.\n      - priority: [default: 3]\n      - title: What is to be done\n      - tags\n"
    );
}

#[test]
fn page_shows_all_details() {
    assert_eq!(
        ToolView::of(&tool()).page(),
        "todo__create_todo\n  tool `create_todo` of the server `todo`\n\n  Creates a todo.\n\n  It is active at first.\n\
         \nParameters\n  priority?  1..5      [default: 3]\n  title      string    What is to be done\n  tags?      string[]\n\
         \nResult\n  id  integer\n\
         \nAnnotations\n  modifies data; idempotent\n\
         \nExample\n  wharf call todo__create_todo title=text\n"
    );
}
