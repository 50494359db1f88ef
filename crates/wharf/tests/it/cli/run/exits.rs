//! Exit codes and messages of `wharf run`.

use super::super::{CliWorkspace, TODO, json, stderr, stdout};
use super::{agent_file, workspace};
use scripted_model::{Finish, Reply, ScriptedModel, Step, Wire, render, text};
use serde_json::json as value;

#[test]
fn a_run_needs_a_model_and_a_key() {
    let workspace = CliWorkspace::with(TODO);
    let output = workspace.wharf(&["run", "Hi"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("error: 'run' needs 'model'\nhelp: add `model:"), "{}", stderr(&output));
    assert_eq!(json(&workspace.wharf(&["run", "Hi", "--json"]))["error"]["type"], "ConfigError");
    let rows = [
        ("anthropic/x", "no key for 'anthropic': set ANTHROPIC_API_KEY, or 'model.api_key'"),
        ("openai/x", "no key for 'openai': set OPENAI_API_KEY, or 'model.api_key'"),
        ("gemini/x", "no key for 'gemini': set GEMINI_API_KEY, or 'model.api_key'"),
        ("azure_openai/x", "'endpoint' is required for azure_openai"),
        ("claude", "`--model` must be PROVIDER/NAME"),
    ];
    for (model, message) in rows {
        let output = workspace.wharf(&["run", "Hi", "--model", model]);
        assert_eq!(output.status.code(), Some(2), "{model}");
        assert!(stderr(&output).contains(message), "{model}: {}", stderr(&output));
    }
    assert_eq!(workspace.wharf(&["run", " \u{7} "]).status.code(), Some(2), "an empty message");
}

/// The key of a model may be in the state folder, in a file that only its owner can read.
#[cfg(unix)]
#[test]
fn a_key_is_read_from_the_state_folder() {
    use std::os::unix::fs::PermissionsExt;
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let file = agent_file(Wire::Chat, &model.url(), "").replace("MODEL_KEY", "STATE_KEY");
    let workspace = CliWorkspace::with(&file).set("WHARF_HOME", "state");
    let variables = workspace.path("state/.env");
    std::fs::create_dir_all(workspace.path("state")).expect("a folder");
    workspace.write("state/.env", "# keys\nSTATE_KEY=sk-of-the-file\n");
    let set_mode =
        |mode| std::fs::set_permissions(&variables, PermissionsExt::from_mode(mode)).expect("a mode");
    set_mode(0o644);
    let output = workspace.wharf(&["run", "Hi"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("can be read by others"), "{}", stderr(&output));
    set_mode(0o600);
    let output = workspace.wharf(&["run", "Hi"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(model.requests()[0].header("authorization"), Some("Bearer sk-of-the-file"));
    workspace.set("STATE_KEY", "sk-of-the-process").wharf(&["run", "Hi"]);
    assert_eq!(model.requests()[1].header("authorization"), Some("Bearer sk-of-the-process"));
}

#[test]
fn trouble_of_the_model_decides_the_exit_code() {
    let chat = |steps: &[Step]| Reply::answer(Wire::Chat, steps);
    let error = |status: u16| Reply::error(status, &value!({ "error": { "message": "no" } }));
    let soon = |status: u16| error(status).header("retry-after-ms", "1");
    let rows = [
        ("401", error(401), 2, "the provider answered 401: no\nhelp: check the key of 'openai' in"),
        ("404", error(404), 2, "help: check 'model.name'"),
        ("400", error(400), 76, "the provider answered 400"),
        ("413", error(413), 1, "does not fit into the context window"),
        ("429", soon(429), 75, "the provider answered 429"),
        ("429, later", error(429).header("retry-after", "99"), 75, "the server asked to retry after 99 s"),
        ("529", soon(529), 75, "the provider answered 529"),
        ("500", soon(500), 76, "the provider answered 500"),
        ("refusal", chat(&[text("No."), Step::End(Finish::Refused)]), 1, "the model refused to answer"),
        ("filter", chat(&[text("No."), Step::End(Finish::Filtered)]), 1, "the provider filtered"),
        ("length", chat(&[text("Half"), Step::End(Finish::Length)]), 1, "'model.max_tokens' is reached"),
    ];
    for (row, reply, code, message) in rows {
        let model = ScriptedModel::start(vec![reply]);
        let workspace = workspace(Wire::Chat, &model, "");
        let output = workspace.wharf(&["run", "Hi"]);
        assert_eq!(output.status.code(), Some(code), "{row}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{row}: {}", stderr(&output));
        let document = json(&workspace.wharf(&["run", "Hi", "--json"]));
        assert_eq!(document["success"], false, "{row}");
        assert!(document["error"]["message"].is_string(), "{row}: {document}");
    }
}

#[test]
fn an_unreachable_model_is_unavailable_and_a_silent_one_times_out() {
    let workspace =
        CliWorkspace::with(&agent_file(Wire::Chat, "http://127.0.0.1:1/", "")).set("MODEL_KEY", "k");
    let output = workspace.wharf(&["run", "Hi"]);
    assert_eq!(output.status.code(), Some(69), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("retry in ").count(), 3, "{}", stderr(&output));
    let model = ScriptedModel::start(vec![Reply::silence()]);
    let workspace = super::workspace(Wire::Chat, &model, "");
    let output = workspace.wharf(&["run", "Hi", "--timeout", "1"]);
    assert_eq!(output.status.code(), Some(124), "{}", stderr(&output));
    assert!(stderr(&output).contains("error: the run took longer than 1 s"), "{}", stderr(&output));
}

#[test]
fn a_cut_answer_is_printed_once_when_it_is_whole() {
    let cut = Reply::stream(render(Wire::Ollama, &[text("lost")]));
    let model = ScriptedModel::start(vec![cut, Reply::text(Wire::Ollama, "whole")]);
    let output = workspace(Wire::Ollama, &model, "").wharf(&["run", "Hi"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "whole\n"));
    assert!(stderr(&output).contains("retry in "), "{}", stderr(&output));
}

#[test]
fn limits_end_a_run_with_code_1() {
    let reply = Reply::calls(Wire::Chat, &[("c1", "todo__list_todos", "{}")]);
    let model = ScriptedModel::start(vec![reply.clone(), reply.clone(), Reply::text(Wire::Chat, "So far")]);
    let output = workspace(Wire::Chat, &model, "").wharf(&["run", "Hi", "--max-turns", "2"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), "So far\n"));
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2].body["tool_choice"], "none", "the last request forbids tools");
}

#[test]
fn a_required_server_that_fails_ends_the_run_and_another_one_does_not() {
    let down = "  - {name: down, description: d, type: mcp, server: x, transport: http, url: 'http://127.0.0.1:1/mcp'";
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    for (required, code) in [(", required: true}\n", 69), ("}\n", 0)] {
        let file = agent_file(Wire::Chat, &model.url(), "") + down + required;
        let output = CliWorkspace::with(&file).set("MODEL_KEY", "k").wharf(&["run", "Hi"]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains("`down`"), "{}", stderr(&output));
    }
    assert_eq!(model.requests().len(), 1, "the model is not asked without a required server");
}
