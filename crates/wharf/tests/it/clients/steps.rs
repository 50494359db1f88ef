//! What every client does, and what it has to hear: the same for all of them.

use serde_json::{Value, json};

/// A request, and what its answer has.
pub(super) struct Step {
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// Taken again until its answer has this: a server that has just been started may not be in the lists yet.
    pub(super) until: &'static str,
    expected: Expected,
}

enum Expected {
    /// A result with all this in it.
    Result(Value),
    /// A result, and so much progress before it.
    Progress(Value, Value),
    /// An error with one of these codes. A client may have a code of its own for what its era calls otherwise.
    Error(&'static [i64]),
}

/// Takes some steps and comes back with what came of each: `{"result"}` or `{"error": {"code"}}`, and its `progress`.
pub(super) type Visit<'a> = dyn FnMut(&[Step]) -> Vec<Value> + 'a;

const INVALID_PARAMS: i64 = -32602;
const NO_RESOURCE: i64 = -32002;

/// The steps that any client can take, even one that is started anew for each.
pub(super) fn plain() -> Vec<Step> {
    let tools = ["todo__create_todo", "todo__delete_todo", "everything__echo", "everything__get-sum"];
    let tools: Vec<Value> = tools.map(|it| json!({ "name": it, "inputSchema": { "type": "object" } })).into();
    let text = |it: &str| json!({ "content": [{ "type": "text", "text": it }] });
    vec![
        Step { until: "everything__echo", ..step("tools/list", json!({}), json!({ "tools": tools })) },
        call(
            "todo__create_todo",
            json!({ "title": "Milk", "tags": ["shop"] }),
            json!({ "structuredContent": { "title": "Milk", "tags": ["shop"], "status": "active" } }),
        ),
        call("everything__get-sum", json!({ "a": 2, "b": 3 }), text("The sum of 2 and 3 is 5.")),
        call(
            "todo__delete_todo",
            json!({ "todo_id": 4_000_000 }),
            json!({ "isError": true, "content": [{ "text": "there is no todo with `todo_id` 4000000" }] }),
        ),
        step(
            "prompts/get",
            json!({ "name": "everything__args-prompt", "arguments": { "city": "Berlin" } }),
            json!({ "messages": [{ "role": "user", "content": { "text": "What's weather in Berlin?" } }] }),
        ),
        step(
            "resources/read",
            json!({ "uri": "todo://all" }),
            json!({ "contents": [{ "uri": "todo://all", "mimeType": "application/json" }] }),
        ),
    ]
}

/// The rest of what a server offers.
fn more() -> Vec<Step> {
    let text = |it: &str| json!({ "content": [{ "type": "text", "text": it }] });
    vec![
        call("everything__echo", json!({ "message": "Grüße, 世界 🌍" }), text("Echo: Grüße, 世界 🌍")),
        step(
            "prompts/list",
            json!({}),
            json!({ "prompts": [{ "name": "todo__plan_my_day" }, { "name": "everything__args-prompt" }] }),
        ),
        step(
            "resources/list",
            json!({}),
            json!({ "resources": [
                { "uri": "todo://all", "mimeType": "application/json" },
                { "uri": "demo://resource/static/document/features.md" },
            ] }),
        ),
        step(
            "resources/templates/list",
            json!({}),
            json!({ "resourceTemplates": [
                { "uriTemplate": "todo://{id}" },
                { "uriTemplate": "demo://resource/dynamic/text/{resourceId}" },
            ] }),
        ),
        step(
            "resources/read",
            json!({ "uri": "demo://resource/dynamic/text/7" }),
            json!({ "contents": [{ "uri": "demo://resource/dynamic/text/7", "mimeType": "text/plain" }] }),
        ),
    ]
}

/// All of it, and what only a client can do that stays: be told how a call gets on, and be refused.
pub(super) fn all() -> Vec<Step> {
    let mut steps = plain();
    steps.extend(more());
    let long = "Long running operation completed. Duration: 0.3 seconds, Steps: 3.";
    steps.extend([
        Step {
            method: "tools/call",
            params: json!({
                "name": "everything__trigger-long-running-operation",
                "arguments": { "duration": 0.3, "steps": 3 },
            }),
            until: "",
            expected: Expected::Progress(json!({ "content": [{ "text": long }] }), json!([1.0, 2.0, 3.0])),
        },
        refused("tools/call", json!({ "name": "nothing", "arguments": {} }), &[INVALID_PARAMS]),
        refused(
            "tools/call",
            json!({ "name": "everything__get-sum", "arguments": { "a": "two", "b": 3 } }),
            &[INVALID_PARAMS],
        ),
        refused("prompts/get", json!({ "name": "nothing" }), &[INVALID_PARAMS]),
        refused("resources/read", json!({ "uri": "demo://nowhere" }), &[NO_RESOURCE, INVALID_PARAMS]),
    ]);
    steps
}

/// The server asks the client something while it works for it. A question names no call, so it is passed on only while
/// nobody else's call is out at that server.
pub(super) fn questions() -> Vec<Step> {
    let thought = "LLM sampling result: \n{\n  \"model\": \"none\",\n  \"role\": \"assistant\",\n  \"content\": {\n    \
         \"type\": \"text\",\n    \"text\": \"I think so\"\n  }\n}";
    vec![call(
        "everything__trigger-sampling-request",
        json!({ "prompt": "Is it?", "maxTokens": 5 }),
        json!({ "content": [{ "text": thought }] }),
    )]
}

/// A call that takes its time and says how far it has got.
pub(super) fn long() -> Vec<Step> {
    let done = "Long running operation completed. Duration: 2 seconds, Steps: 4.";
    let listed = step("tools/list", json!({}), json!({}));
    let called = call(
        "everything__trigger-long-running-operation",
        json!({ "duration": 2, "steps": 4 }),
        json!({ "content": [{ "text": done }] }),
    );
    vec![Step { until: "everything__trigger-long-running-operation", ..listed }, called]
}

/// The server wants to know the client's roots.
pub(super) fn roots() -> Vec<Step> {
    let tool = "everything__get-roots-list";
    let listed = step("tools/list", json!({}), json!({ "tools": [{ "name": tool }] }));
    let called = call(tool, json!({}), json!({}));
    vec![Step { until: tool, ..listed }, Step { until: "harbour\\n   URI: file:///", ..called }]
}

/// The folders that a server says it may use, which nobody but its operator has a say in.
pub(super) fn allowed(source: &str, folder: &str) -> Vec<Step> {
    let tool = format!("{source}__list_allowed_directories");
    let said = json!({ "content": [{ "text": format!("Allowed directories:\n{folder}") }] });
    let listed = step("tools/list", json!({}), json!({ "tools": [{ "name": tool }] }));
    vec![Step { until: "__list_allowed_directories", ..listed }, call(&tool, json!({}), said)]
}

fn step(method: &'static str, params: Value, expected: Value) -> Step {
    Step { method, params, until: "", expected: Expected::Result(expected) }
}

fn call(tool: &str, arguments: Value, expected: Value) -> Step {
    step("tools/call", json!({ "name": tool, "arguments": arguments }), expected)
}

fn refused(method: &'static str, params: Value, codes: &'static [i64]) -> Step {
    Step { method, params, until: "", expected: Expected::Error(codes) }
}

/// Has a client take these steps, and fails unless it heard what it was to hear.
pub(super) fn check(client: &str, steps: &[Step], visit: &mut Visit<'_>) {
    let answers = visit(steps);
    assert_eq!(answers.len(), steps.len(), "{client} did not take every step: {answers:#?}");
    for (step, answer) in steps.iter().zip(&answers) {
        let is_right = match &step.expected {
            Expected::Result(expected) => holds(&answer["result"], expected),
            Expected::Progress(expected, progress) => {
                holds(&answer["result"], expected) && same_numbers(&answer["progress"], progress)
            }
            Expected::Error(codes) => answer["error"]["code"].as_i64().is_some_and(|it| codes.contains(&it)),
        };
        assert!(is_right, "{client}: {} {} was answered with {answer:#}", step.method, step.params);
    }
}

/// Whether everything expected is there; there may be more.
fn holds(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => {
            expected.iter().all(|(key, expected)| got.get(key).is_some_and(|got| holds(got, expected)))
        }
        (Value::Array(got), Value::Array(expected)) => {
            expected.iter().all(|expected| got.iter().any(|got| holds(got, expected)))
        }
        (got, expected) => got == expected,
    }
}

/// A client may write 1 for 1.0, and may hand out reports in any order. The TypeScript client forgets who wanted a report
/// when it reads the answer with it in one go, so the last one may be missing.
fn same_numbers(got: &Value, expected: &Value) -> bool {
    let numbers = |it: &Value| {
        let mut numbers: Vec<f64> = it.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    };
    let (got, expected) = (numbers(got), numbers(expected));
    expected.starts_with(&got) && got.len() + 1 >= expected.len()
}
