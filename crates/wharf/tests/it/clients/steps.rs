//! The steps that every client takes, and the expected responses.

use serde_json::{Value, json};

/// A request and its expected response.
pub(super) struct Step {
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// Text to wait for: the step is repeated until the response contains it, because a server that has just
    /// started may not be listed yet.
    pub(super) until: &'static str,
    expected: Expected,
}

enum Expected {
    /// A result that contains all of this.
    Result(Value),
    /// A result, and the progress before it.
    Progress(Value, Value),
    /// An error with one of these codes. Some clients translate the codes of an era.
    Error(&'static [i64]),
}

/// Runs steps and returns the outcome of each: `{"result"}` or `{"error": {"code"}}`, with its `progress`.
pub(super) type StepRunner<'a> = dyn FnMut(&[Step]) -> Vec<Value> + 'a;

const INVALID_PARAMS: i64 = -32602;
const NO_RESOURCE: i64 = -32002;

/// Returns the steps for any client, even one that starts anew for each step.
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

/// Returns the steps for the other features of a server.
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

/// Returns all steps, including those that need a persistent client: progress and errors.
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
        call("everything__get-sum", json!({ "a": "two", "b": 3 }), json!({ "isError": true })),
        refused("prompts/get", json!({ "name": "nothing" }), &[INVALID_PARAMS]),
        refused("resources/read", json!({ "uri": "demo://nowhere" }), &[NO_RESOURCE, INVALID_PARAMS]),
    ]);
    steps
}

/// Returns a call during which the server asks the client a question. A question names no call, so the gateway
/// forwards it only while no other client has a call at that server.
pub(super) fn questions() -> Vec<Step> {
    let thought = "LLM sampling result: \n{\n  \"model\": \"none\",\n  \"role\": \"assistant\",\n  \"content\": {\n    \
         \"type\": \"text\",\n    \"text\": \"I think so\"\n  }\n}";
    vec![call(
        "everything__trigger-sampling-request",
        json!({ "prompt": "Is it?", "maxTokens": 5 }),
        json!({ "content": [{ "text": thought }] }),
    )]
}

/// Returns a slow call with progress notifications.
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

/// Returns a call for which the server asks for the client's roots.
pub(super) fn roots() -> Vec<Step> {
    let tool = "everything__get-roots-list";
    let listed = step("tools/list", json!({}), json!({ "tools": [{ "name": tool }] }));
    let called = call(tool, json!({}), json!({}));
    vec![Step { until: tool, ..listed }, Step { until: "harbour\\n   URI: file:///", ..called }]
}

/// Returns a call for the folders that a server may use, which only its operator may decide.
pub(super) fn allowed(source: &str, folder: &str) -> Vec<Step> {
    let tool = format!("{source}__list_allowed_directories");
    let said = json!({ "content": [{ "text": format!("Allowed directories:\n{folder}") }] });
    let listed = step("tools/list", json!({}), json!({ "tools": [{ "name": tool }] }));
    vec![Step { until: "__list_allowed_directories", ..listed }, call(&tool, json!({}), said)]
}

fn step(method: &'static str, params: Value, expected: Value) -> Step {
    Step { method, params, until: "", expected: Expected::Result(expected) }
}

/// Returns the step that lists the tools, which must be among these or more.
pub(super) fn list_tools(tools: Vec<Value>) -> Step {
    step("tools/list", json!({}), json!({ "tools": tools }))
}

pub(super) fn call(tool: &str, arguments: Value, expected: Value) -> Step {
    step("tools/call", json!({ "name": tool, "arguments": arguments }), expected)
}

fn refused(method: &'static str, params: Value, codes: &'static [i64]) -> Step {
    Step { method, params, until: "", expected: Expected::Error(codes) }
}

/// Runs the steps with a client and checks the responses.
pub(super) fn check(client: &str, steps: &[Step], run_steps: &mut StepRunner<'_>) {
    let answers = run_steps(steps);
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

/// Checks that `got` contains everything expected; it may contain more.
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

/// Compares progress values. A client may write 1 for 1.0 and report in any order. The TypeScript client drops a
/// notification that it reads together with the response, so the last may be missing.
fn same_numbers(got: &Value, expected: &Value) -> bool {
    let numbers = |it: &Value| {
        let mut numbers: Vec<f64> = it.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    };
    let (got, expected) = (numbers(got), numbers(expected));
    expected.starts_with(&got) && got.len() + 1 >= expected.len()
}
