//! Tests what the model is offered: which tools at once, and the instructions of servers.

use super::{
    super::{stderr, stdout},
    workspace,
};
use crate::chat::TODO;
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::Value;

/// Runs once. Returns the request.
fn request(more: &str, of_entry: &str) -> Value {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let workspace = workspace(Wire::Chat, &model, more);
    let file = std::fs::read_to_string(workspace.path("agent.yaml")).expect("the agent file");
    workspace.write("agent.yaml", file.replace(super::TODO, &format!("{TODO}{of_entry}")));
    let output = workspace.wharf(&["run", "Hi"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    model.requests()[0].body.clone()
}

fn has_tool(request: &Value, name: &str) -> bool {
    request["tools"].as_array().expect("tools").iter().any(|it| it["function"]["name"] == name)
}

#[test]
fn a_source_says_whether_its_tools_are_deferred() {
    let budget = "context: {tool_budget: 1000}\n";
    for (more, of_entry, is_offered, is_deferred) in [
        ("", "", true, false),
        ("", "    defer_loading: auto\n", true, false),
        ("", "    defer_loading: true\n", false, true),
        (budget, "    defer_loading: auto\n", false, true),
        (budget, "    defer_loading: false\n", true, true),
    ] {
        let request = request(more, of_entry);
        assert_eq!(has_tool(&request, "todo__create_todo"), is_offered, "{more}{of_entry}{request}");
        assert_eq!(has_tool(&request, "wharf__find_tools"), is_deferred, "{more}{of_entry}{request}");
    }
}

#[test]
fn instructions_of_servers_are_shown_if_the_file_says_so() {
    let shown = request("instructions: {inline: Be brief.}\ncontext: {server_instructions: true}\n", "");
    let system = shown["messages"][0]["content"].as_str().expect("a text").to_owned();
    assert!(system.contains("Be brief.\n\n# todo\n\n"), "{system}");
    let usual = request("instructions: {inline: Be brief.}\n", "");
    assert!(!usual["messages"][0].to_string().contains("# todo"), "{usual}");
}

#[test]
fn a_server_that_cannot_be_reached_is_named_in_every_form_of_output() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let workspace = workspace(Wire::Chat, &model, "");
    let down = "  - name: notes\n    description: Notes\n    type: mcp\n    server: notes\n    transport: http\n    \
        url: http://127.0.0.1:9/mcp\n";
    let file = std::fs::read_to_string(workspace.path("agent.yaml")).expect("the agent file");
    workspace.write("agent.yaml", file + down);
    for flags in [&[][..], &["--json"], &["--events"]] {
        let output = workspace.wharf(&[&["run", "Hi"], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        let shown = stderr(&output);
        let is_warning = |it: &&str| it.starts_with("warning: ") && it.contains("notes");
        assert_eq!(shown.lines().filter(is_warning).count(), 1, "{flags:?}: {shown}");
        if flags == ["--events"] {
            let events = stdout(&output);
            let mut events = events.lines().map(|it| serde_json::from_str::<Value>(it).expect("an event"));
            assert_eq!(events.next().expect("an event")["event"], "started");
            let error = events.next().expect("an event");
            let kind = (&error["event"], &error["data"]["error_type"]);
            assert_eq!(kind, (&"error".into(), &"mcp_connection_error".into()), "{error}");
            let message = error["data"]["message"].as_str().expect("a message");
            assert!(message.contains("notes"), "{message}");
        }
    }
}
