//! Tests `wharf run` with a scripted model: the answer, the calls, the exit codes and the documents.

mod attachments;
mod canary;
mod exits;
mod explained;
mod failures;
mod injection;
mod interrupts;
mod matrix;
mod offered;
mod streams;

use super::{CliWorkspace, TODO, json, stderr, stdout};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::Value;

/// An agent file for a scripted model, with the Todo server.
fn agent_file(wire: Wire, url: &str, more: &str) -> String {
    let (provider, api) = match wire {
        Wire::Responses => ("openai", "  api: responses\n"),
        Wire::Chat => ("openai", ""),
        Wire::Anthropic => ("anthropic", ""),
        Wire::Gemini => ("gemini", ""),
        Wire::Ollama => ("ollama", ""),
    };
    format!(
        "model:\n  provider: {provider}\n  name: m\n  endpoint: {url}\n  api_key: ${{MODEL_KEY}}\n{api}{more}{TODO}"
    )
}

fn workspace(wire: Wire, model: &ScriptedModel, more: &str) -> CliWorkspace {
    CliWorkspace::with(&agent_file(wire, &model.url(), more)).set("MODEL_KEY", "sk-canary-7f3e9a")
}

/// Returns the keys of an object in order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|it| it.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn every_dialect_calls_tools_and_answers() {
    for wire in Wire::ALL {
        let model = ScriptedModel::start(vec![
            Reply::calls(wire, &[("c1", "todo__create_todo", r#"{"title":"buy eggs"}"#)]).in_chunks(7),
            Reply::text(wire, "I've created it."),
        ]);
        let workspace = workspace(wire, &model, "");
        let output = workspace.wharf(&["run", "Remind me to buy eggs"]);
        assert_eq!(output.status.code(), Some(0), "{wire:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "I've created it.\n", "{wire:?}");
        let shown = stderr(&output);
        assert!(shown.contains("→ todo__create_todo title=\"buy eggs\"\n← "), "{wire:?}: {shown}");
        let requests = model.requests();
        assert_eq!(requests.len(), 2, "{wire:?}");
        let second = requests[1].body.to_string();
        assert!(second.contains("buy eggs") && second.contains("todo__list_todos"), "{wire:?}: {second}");
        let todos = workspace.wharf(&["call", "list_todos"]);
        assert!(stdout(&todos).contains("buy eggs"), "{wire:?}: the tool was called");
    }
}

#[test]
fn json_is_one_document_with_the_calls() {
    let model = ScriptedModel::start(vec![
        Reply::calls(
            Wire::Chat,
            &[
                ("c1", "todo__create_todo", r#"{"title":"sk-canary-7f3e9a"}"#),
                ("c2", "get_sk-canary-7f3e9a", "{}"),
            ],
        ),
        Reply::text(Wire::Chat, "The key is sk-canary-7f3e9a."),
    ]);
    let workspace = workspace(Wire::Chat, &model, "");
    let output = workspace.wharf(&["run", "Hi", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!(document["final_output"], "The key is ***.");
    assert_eq!((&document["status"], &document["success"]), (&"finished".into(), &true.into()));
    assert_eq!((&document["turns"], &document["tools_called"][0]), (&2.into(), &"todo__create_todo".into()));
    assert_eq!(document["usage"]["input"], 20);
    let call = &document["tool_calls"][0];
    assert_eq!((&call["tool_name"], &call["status"]), (&"create_todo".into(), &"success".into()));
    assert_eq!(call["request_id"], "c1");
    assert_eq!(call["thread_id"], document["conversation_id"]);
    assert!(!stdout(&output).contains("canary") && !stderr(&output).contains("canary"));
    let documented = include_str!("../../../../../docs/json.md").split("## `wharf run`").nth(1);
    let example = documented.and_then(|it| it.split("```json\n").nth(1)?.split("\n```").next());
    let example: Value = serde_json::from_str(example.expect("an example")).expect("JSON");
    assert_eq!(keys(&document), keys(&example));
    assert_eq!(keys(&document["usage"]), keys(&example["usage"]));
    assert_eq!(keys(call), keys(&example["tool_calls"][0]));
}

#[test]
fn events_are_lines_and_done_is_the_last() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Anthropic, &[("c1", "todo__list_todos", "{}")]),
        Reply::text(Wire::Anthropic, "None."),
    ]);
    let output = workspace(Wire::Anthropic, &model, "").wharf(&["run", "Hi", "--events"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let events: Vec<Value> = stdout(&output)
        .lines()
        .map(|it| serde_json::from_str(it).expect("one JSON object per line"))
        .collect();
    let names: Vec<&str> = events.iter().filter_map(|it| it["event"].as_str()).collect();
    assert_eq!(names, ["started", "usage", "tool_call", "tool_call", "response_delta", "usage", "done"]);
    assert_eq!(events[2]["data"]["status"], "in_progress");
    assert_eq!(events[3]["data"]["status"], "completed");
    assert_eq!(events[4]["data"], serde_json::json!({ "delta": "None.", "offset": 0 }));
    assert_eq!(events[6]["data"]["final_output"], "None.");
}

#[test]
fn a_message_is_read_from_standard_input() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Ollama, "ok")]);
    let workspace = workspace(Wire::Ollama, &model, "");
    for arguments in [&["run"][..], &["run", "-"]] {
        let mut command = workspace.command(env!("CARGO_BIN_EXE_wharf").as_ref());
        workspace.write("message", "From a \u{7}file\n");
        let file = std::fs::File::open(workspace.path("message")).expect("the message");
        let output = command.args(arguments).stdin(file).output().expect("wharf runs");
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "ok\n"));
    }
    for request in model.requests() {
        assert!(request.body.to_string().contains("From a file"), "{}", request.body);
    }
}

#[test]
fn calls_that_need_approval_are_denied_without_a_terminal() {
    let rules = "approval: {ask: ['todo:create_*'], deny: ['todo:delete_*']}\n";
    let script = || {
        let calls = [
            ("c1", "todo__create_todo", r#"{"title":"a"}"#),
            ("c2", "todo__list_todos", "{}"),
            ("c3", "todo__delete_todo", r#"{"id":1}"#),
        ];
        vec![Reply::calls(Wire::Chat, &calls), Reply::text(Wire::Chat, "Done")]
    };
    let rows: [(&[&str], bool); 4] = [
        (&[], false),
        (&["--allow", "todo:create_todo"], true),
        (&["--yes"], true),
        (&["--deny", "todo:*"], false),
    ];
    for (flags, is_allowed) in rows {
        let model = ScriptedModel::start(script());
        let workspace = workspace(Wire::Chat, &model, rules);
        let output = workspace.wharf(&[&["run", "Hi"], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        let requests = model.requests();
        let offered = requests[0].body["tools"].to_string();
        assert!(!offered.contains("delete_todo"), "a denied tool is not offered: {offered}");
        let results = requests[1].body["messages"].to_string();
        let denied = "denied: the user did not allow this call: nobody is there to ask. Do not try it again.";
        assert_eq!(results.contains(denied), !is_allowed && flags.is_empty(), "{flags:?}: {results}");
        assert!(results.contains("denied: the configuration did not allow this call"), "{results}");
        if flags.is_empty() {
            let shown = stderr(&output);
            assert!(shown.contains("allow it with --allow 'todo:create_todo' or --yes"), "{shown}");
        }
        let todos = stdout(&workspace.wharf(&["call", "list_todos", "--json"]));
        assert_eq!(todos.contains("\"title\": \"a\""), is_allowed, "{flags:?}: {todos}");
    }
}

#[test]
fn structured_answers_have_the_configured_format() {
    let format = "response_format: {type: object, required: [n], properties: {n: {type: integer}}}\n";
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Responses, &[("c1", "wharf__answer", r#"{"n":"x"}"#)]),
        Reply::calls(Wire::Responses, &[("c2", "wharf__answer", r#"{"n":7}"#)]),
    ]);
    let output = workspace(Wire::Responses, &model, format).wharf(&["run", "Hi", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!((&document["structured"]["n"], &document["final_output"]), (&7.into(), &r#"{"n":7}"#.into()));
}

#[test]
fn text_of_models_and_tools_cannot_control_a_terminal() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"\u001b[31mred"}"#)]),
        Reply::text(Wire::Chat, "\u{1b}]0;owned\u{7}Done\u{202e}"),
    ]);
    let output = workspace(Wire::Chat, &model, "").wharf(&["run", "Hi"]);
    assert!(!stdout(&output).contains('\u{1b}') && !stderr(&output).contains('\u{1b}'));
    assert!(stdout(&output).contains("Done"));
}

#[test]
fn a_saved_conversation_continues_and_is_shown_and_deleted() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#)]),
        Reply::text(Wire::Chat, "Created."),
        Reply::text(Wire::Chat, "Eggs."),
    ]);
    let workspace = workspace(Wire::Chat, &model, "");
    let first = workspace.wharf(&["run", "Buy eggs", "--save"]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let shown = stderr(&first);
    let id = shown.lines().find_map(|it| it.strip_prefix("conversation ")).expect("an id").to_owned();
    let again = ["run", "What did I buy?", "--conversation", &id, "--json", "--model", "openai/m2"];
    let second = workspace.wharf(&again);
    assert_eq!(json(&second)["conversation_id"], id.as_str(), "{}", stderr(&second));
    assert!(model.requests()[2].body.to_string().contains("Created."), "the history is sent");
    let listed = json(&workspace.wharf(&["conversations", "list", "--json"]));
    let conversation = &listed["conversations"][0];
    assert_eq!((&conversation["id"], &conversation["title"]), (&id.as_str().into(), &"Buy eggs".into()));
    assert_eq!(conversation["state"], "idle");
    assert_eq!(conversation["model"], "m2", "the model that was asked last");
    let text = stdout(&workspace.wharf(&["conversations", "show", &id]));
    for line in ["user      Buy eggs", "started   todo:create_todo (it is built in)", "answer    Eggs."] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert_eq!(workspace.wharf(&["conversations", "delete", &id]).status.code(), Some(0));
    for arguments in [&["conversations", "show", &id][..], &["run", "Hi", "--conversation", &id]] {
        let output = workspace.wharf(arguments);
        assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
        assert!(stderr(&output).contains("there is no conversation"), "{}", stderr(&output));
    }
    assert!(
        json(&workspace.wharf(&["conversations", "list", "--json"]))["conversations"]
            == serde_json::json!([])
    );
}
