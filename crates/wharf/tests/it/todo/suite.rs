//! Tests the behaviour of the server, which is the same on both engines.

use super::{engines::Engine, server::Todos};
use serde_json::{Value, json};

#[tokio::test]
async fn suite_passes_on_sqlite() {
    run_suite(Engine::sqlite()).await;
}

#[tokio::test]
async fn suite_passes_on_postgres() {
    run_suite(Engine::postgres()).await;
}

async fn run_suite(engine: Engine) {
    let todos = Todos::start(&engine.address()).await;
    check_tool_list(&todos).await;
    check_create_update_delete(&todos).await;
    check_errors_name_the_field(&todos).await;
    check_filters(&todos).await;
    check_literal_search(&todos).await;
    check_sql_injection(&todos).await;
    check_resources_and_prompts(&todos).await;
    todos.close().await;
}

async fn check_tool_list(todos: &Todos) {
    let listed = todos.ask("tools/list", json!({})).await.expect("a list");
    let shown = |tool: &Value| {
        let parameters: Vec<&String> =
            tool["inputSchema"]["properties"].as_object().expect("parameters").keys().collect();
        let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        assert!(
            tool["outputSchema"]["required"].is_array() && tool["annotations"]["readOnlyHint"].is_boolean()
        );
        format!("{} | {} | {parameters:?} | {required:?}", tool["name"], tool["description"])
    };
    let lines: Vec<String> = listed["tools"].as_array().expect("tools").iter().map(shown).collect();
    let expected = [
        r#""create_todo" | "Creates a new todo item with title, optional description, priority, tags, and due date" | ["title", "description", "priority", "tags", "due_date"] | [String("title")]"#,
        r#""list_todos" | "Lists todos filtered by status, priority, tags, or due date" | ["status", "priority", "tags", "due_date_before", "due_date_after"] | []"#,
        r#""update_todo" | "Updates an existing todo's fields by ID" | ["todo_id", "title", "description", "status", "priority", "tags", "due_date"] | [String("todo_id")]"#,
        r#""search_todos" | "Searches todos by keyword in title or description" | ["query", "status", "priority"] | [String("query")]"#,
        r#""delete_todo" | "Deletes a todo by ID" | ["todo_id"] | [String("todo_id")]"#,
    ];
    assert_eq!(lines, expected);
    let unknown = todos.ask("tools/call", json!({ "name": "drop_todos" })).await;
    assert_eq!(unknown, Err("unknown tool: drop_todos".to_owned()));
}

async fn check_create_update_delete(todos: &Todos) {
    let arguments = json!({ "title": "Buy groceries", "description": "for two", "priority": 2, "tags": ["shopping", "errands"], "due_date": "2026-01-31" });
    let made = todos.call("create_todo", arguments.clone()).await.expect("a todo");
    assert_eq!((&made["id"], &made["status"]), (&json!(1), &json!("active")));
    for (name, value) in arguments.as_object().expect("an object") {
        assert_eq!(&made[name], value);
    }
    assert!(made["created_at"].as_str().is_some_and(|it| it.ends_with('Z')), "{made}");
    let plain = todos.create("plain").await;
    assert_eq!(
        (&plain["priority"], &plain["tags"], &plain["due_date"]),
        (&json!(null), &json!([]), &json!(null))
    );

    for (change, field, expected) in [
        (json!({ "todo_id": 1, "status": "completed" }), "status", json!("completed")),
        (json!({ "id": 1, "title": "Buy food" }), "title", json!("Buy food")),
        (json!({ "id": 1, "priority": 5, "tags": null }), "priority", json!(5)),
        (json!({ "id": 1, "tags": [] }), "tags", json!([])),
        (json!({ "id": 1, "due_date": "" }), "due_date", json!(null)),
        (json!({ "id": 1, "description": "" }), "description", json!(null)),
    ] {
        let after = todos.call("update_todo", change.clone()).await.expect("a todo");
        assert_eq!(after[field], expected, "{change}");
    }
    let gone = todos.call("delete_todo", json!({ "todo_id": 1 })).await;
    assert_eq!(gone, Ok(json!({ "id": 1, "title": "Buy food", "deleted": true })));
    for (tool, arguments) in
        [("delete_todo", json!({ "todo_id": 1 })), ("update_todo", json!({ "todo_id": 1, "title": "x" }))]
    {
        let error = todos.call(tool, arguments).await;
        assert_eq!(error, Err("there is no todo with `todo_id` 1".to_owned()));
    }
    todos.call("delete_todo", json!({ "id": 2 })).await.expect("it is deleted");
}

async fn check_errors_name_the_field(todos: &Todos) {
    for (tool, arguments, expected) in [
        ("create_todo", json!({}), "`title` is missing"),
        (
            "create_todo",
            json!({ "title": "x", "priority": 6 }),
            "`priority` must be a whole number from 1 to 5, and is 6",
        ),
        (
            "create_todo",
            json!({ "title": "x", "due_date": "2026-02-30" }),
            "`due_date` must be a date that exists",
        ),
        (
            "create_todo",
            json!({ "title": "", "priority": "a" }),
            "`title` must not be empty; `priority` must be",
        ),
        (
            "list_todos",
            json!({ "status": "done" }),
            "`status` must be one of active, completed, archived, and is \"done\"",
        ),
        ("list_todos", json!({ "due_date_after": "soon" }), "`due_date_after` must be a date"),
        ("update_todo", json!({ "title": "x" }), "`todo_id` is missing"),
        ("update_todo", json!({ "todo_id": 1 }), "nothing to change"),
        (
            "update_todo",
            json!({ "todo_id": "1; DROP TABLE todos", "title": "x" }),
            "`todo_id` must be a whole number",
        ),
        ("search_todos", json!({}), "`query` is missing"),
        ("search_todos", json!({ "query": "x", "sort": "id;drop" }), "`search_todos` has no `sort`"),
        ("delete_todo", json!({ "todo_id": -1 }), "`todo_id` must be a whole number from 1, and is -1"),
    ] {
        let error = todos.call(tool, arguments.clone()).await.expect_err("a complaint");
        assert!(error.starts_with(expected), "{tool} {arguments}: {error}");
    }
    assert_eq!(todos.titles("list_todos", json!({})).await, [""; 0], "nothing was written");
}

async fn check_filters(todos: &Todos) {
    for (title, rest) in [
        ("a", json!({ "priority": 1, "tags": ["Home", "urgent"], "due_date": "2026-01-31" })),
        ("b", json!({ "priority": 1, "tags": ["home"], "due_date": "2026-02-01" })),
        ("c", json!({ "priority": 2 })),
    ] {
        let mut arguments = rest;
        arguments["title"] = title.into();
        todos.call("create_todo", arguments).await.expect("a todo");
    }
    for (filter, expected) in [
        (json!({}), &["a", "b", "c"][..]),
        (json!({ "priority": 1 }), &["a", "b"]),
        (json!({ "priority": 1, "tags": ["urgent"] }), &["a"]),
        (json!({ "tags": ["home", "URGENT"], "status": "active" }), &["a"]),
        (json!({ "due_date_before": "2026-02-01" }), &["a"]),
        (json!({ "due_date_after": "2026-01-31", "priority": 1 }), &["b"]),
        (json!({ "status": "archived" }), &[]),
    ] {
        assert_eq!(todos.titles("list_todos", filter.clone()).await, expected, "{filter}");
    }
}

async fn check_literal_search(todos: &Todos) {
    for title in ["Milk and eggs", "50% off: milk", "snake_case", "ÄPFEL"] {
        todos.create(title).await;
    }
    for (query, expected) in [
        ("milk", &["Milk and eggs", "50% off: milk"][..]),
        ("milk and eggs", &["Milk and eggs"]),
        ("%", &["50% off: milk"]),
        ("_", &["snake_case"]),
        ("äpfel", &["ÄPFEL"]),
        ("\"", &[]),
    ] {
        assert_eq!(todos.titles("search_todos", json!({ "query": query })).await, expected, "{query}");
        assert_eq!(todos.titles("search_todos", json!({ "keyword": query })).await, expected, "{query}");
    }
}

/// SQL in any parameter is treated as text or rejected; the rows do not change.
async fn check_sql_injection(todos: &Todos) {
    let before = todos.call("list_todos", json!({})).await.expect("a list");
    for sql in [
        "'; DROP TABLE todos; --",
        "' OR '1'='1",
        "\" OR 1=1 --",
        "x'); DELETE FROM todos; --",
        "$1 OR true",
        "\\'; SELECT pg_sleep(10); --",
        "%' OR title LIKE '%",
    ] {
        let arguments = json!({ "title": sql, "description": sql, "tags": [sql] });
        let made = todos.call("create_todo", arguments.clone()).await.expect("a todo");
        for field in ["title", "description", "tags"] {
            assert_eq!(made[field], arguments[field]);
        }
        let id = &made["id"];
        let updated = todos.call(
            "update_todo",
            json!({ "todo_id": id, "title": format!("{sql} "), "description": sql, "tags": [sql] }),
        );
        assert_eq!(updated.await.expect("a todo")["title"], json!(format!("{sql} ")));
        assert_eq!(todos.titles("search_todos", json!({ "query": sql })).await, [format!("{sql} ")]);
        assert_eq!(todos.titles("list_todos", json!({ "tags": [sql] })).await, [format!("{sql} ")]);
        for (tool, arguments) in [
            ("create_todo", json!({ "title": "x", "due_date": sql })),
            ("create_todo", json!({ "title": "x", "priority": sql })),
            ("list_todos", json!({ "status": sql })),
            ("list_todos", json!({ "priority": sql })),
            ("list_todos", json!({ "due_date_before": sql })),
            ("list_todos", json!({ "due_date_after": sql })),
            ("update_todo", json!({ "todo_id": sql, "title": "x" })),
            ("update_todo", json!({ "todo_id": id, "status": sql })),
            ("update_todo", json!({ "todo_id": id, "due_date": sql })),
            ("search_todos", json!({ "query": "x", "status": sql })),
            ("search_todos", json!({ "query": "x", "priority": sql })),
            ("delete_todo", json!({ "todo_id": sql })),
        ] {
            todos.call(tool, arguments).await.expect_err("a complaint");
        }
        todos.call("delete_todo", json!({ "todo_id": id })).await.expect("it is deleted");
    }
    assert_eq!(todos.call("list_todos", json!({})).await, Ok(before));
}

async fn check_resources_and_prompts(todos: &Todos) {
    let listed = todos.ask("resources/list", json!({})).await.expect("a list");
    assert_eq!(listed["resources"][0]["uri"], "todo://all");
    let uri = &listed["resources"][1]["uri"];
    let read = todos.ask("resources/read", json!({ "uri": uri })).await.expect("contents");
    let text = read["contents"][0]["text"].as_str().expect("a text");
    let todo: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(
        (format!("todo://{}", todo["id"]), &todo["title"]),
        (uri.as_str().expect("a text").into(), &json!("ÄPFEL"))
    );
    let all = todos.ask("resources/read", json!({ "uri": "todo://all" })).await.expect("contents");
    let all: Value =
        serde_json::from_str(all["contents"][0]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(all["count"], 7);
    let templates = todos.ask("resources/templates/list", json!({})).await.expect("a list");
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "todo://{id}");
    for uri in ["todo://999", "todo://", "todo://1 OR 1=1", "file:///etc/passwd"] {
        let unknown = todos.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(unknown, Err(format!("resource not found: {uri}")));
    }
    let prompts = todos.ask("prompts/list", json!({})).await.expect("a list");
    assert_eq!(prompts["prompts"][0]["name"], "plan_my_day");
    let day = json!({ "name": "plan_my_day", "arguments": { "date": "2026-02-01" } });
    let prompt = todos.ask("prompts/get", day).await.expect("a prompt");
    let text = prompt["messages"][0]["content"]["text"].as_str().expect("a text");
    assert!(text.contains("a (overdue since 2026-01-31; priority 1 of 5; Home, urgent)"), "{text}");
    let wrong =
        todos.ask("prompts/get", json!({ "name": "plan_my_day", "arguments": { "date": "x" } })).await;
    assert_eq!(wrong, Err("`date` must be a date that exists, as YYYY-MM-DD".to_owned()));
}
