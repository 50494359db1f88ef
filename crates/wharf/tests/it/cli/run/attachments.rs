//! `wharf run --attach` and `--prompt`: what a user adds to a message, and what the model is shown of it.

use super::super::{CliWorkspace, json, stderr, stdout};
use super::workspace;
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::Value;

/// The smallest beginning by which a PNG is known.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Runs with a model that sees images and answers once per request. Returns the message that it was sent.
fn sent(workspace: &CliWorkspace, model: &ScriptedModel, words: &[&str]) -> Value {
    let output = workspace.wharf(&[&["run"], words].concat());
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "ok\n"), "{}", stderr(&output));
    let requests = model.requests();
    let body = &requests.last().expect("a request").body;
    body["messages"].as_array().and_then(|it| it.last()).expect("a message").clone()
}

#[test]
fn files_and_resources_follow_the_message_in_their_order() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let workspace = workspace(Wire::Chat, &model, "");
    let file = std::fs::read_to_string(workspace.path("agent.yaml")).expect("the agent file");
    workspace.write("agent.yaml", file.replace("  name: m\n", "  name: m\n  images: true\n"));
    workspace.wharf(&["call", "create_todo", "title=Buy eggs"]);
    workspace.write("notes.md", "A fence: ```\n");
    workspace.write("plan.png", PNG);
    let attached =
        ["What is this?", "--attach", "notes.md", "--attach", "todo://1", "--attach", "plan.png", "--save"];
    let message = sent(&workspace, &model, &attached);
    let parts = message["content"].as_array().expect("parts");
    let texts: Vec<&str> = parts.iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(texts[0], "What is this?");
    assert_eq!(texts[1], "File notes.md:\n````\nA fence: ```\n\n````");
    assert!(texts[2].starts_with("Resource todo://1 of the server todo:\n```\n"), "{}", texts[2]);
    assert!(texts[2].contains("Buy eggs"), "{}", texts[2]);
    assert_eq!(parts[3]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgo=");
    let listed = json(&workspace.wharf(&["conversations", "list", "--json"]));
    assert_eq!(listed["conversations"][0]["title"], "What is this?", "the title has no attachment");
}

#[test]
fn a_prompt_takes_the_place_of_the_message() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let workspace = workspace(Wire::Chat, &model, "");
    workspace.wharf(&["call", "create_todo", "title=Buy eggs"]);
    workspace.write("notes.md", "no milk");
    let words = ["--prompt", "todo:plan_my_day", "--attach", "notes.md"];
    let content = sent(&workspace, &model, &words)["content"].to_string();
    for expected in ["[Prompt todo:plan_my_day]", "Buy eggs", "no milk"] {
        assert!(content.contains(expected), "{expected} is not in {content}");
    }
}

/// Attaches two files, of which one is longer than the context window, and lets the model read it.
fn run_with_a_long_file(workspace: &CliWorkspace, model: &ScriptedModel, more: &[&str]) {
    workspace.write("long.log", "nothing happened\n".repeat(4000) + "the disk is full\n");
    workspace.write("notes.md", "no milk");
    let words = ["run", "What happened?", "--attach", "long.log", "--attach", "notes.md"];
    let output = workspace.wharf(&[&words, more].concat());
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "ok\n"), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("File long.log is too long for the context window"),
        "{}",
        stderr(&output)
    );
    let requests = model.requests();
    let first = requests[0].body.to_string();
    for expected in
        ["File long.log, stored as result r-1: text, 68,017 bytes", "no milk", "wharf__read_result"]
    {
        assert!(first.contains(expected), "{expected} is not in {first}");
    }
    let second = requests[1].body.to_string();
    assert!(second.contains("the disk is full"), "the model reads the handle: {second}");
}

fn model_that_reads_the_file() -> ScriptedModel {
    let arguments = r#"{"id":"r-1","pattern":"disk"}"#;
    ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "wharf__grep_result", arguments)]),
        Reply::text(Wire::Chat, "ok"),
    ])
}

#[test]
fn a_file_that_is_too_long_becomes_a_handle() {
    let model = model_that_reads_the_file();
    let workspace = workspace(Wire::Chat, &model, "  context_window: 8000\n");
    run_with_a_long_file(&workspace, &model, &["--save"]);
    let replayed = model_that_reads_the_file();
    let file = std::fs::read_to_string(workspace.path("agent.yaml")).expect("the agent file");
    workspace.write("agent.yaml", file.replace(&model.url(), &replayed.url()));
    run_with_a_long_file(&workspace, &replayed, &["--record", "run.jsonl"]);
    let output = workspace.wharf(&["replay", "run.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn an_agent_without_servers_reads_a_long_file() {
    let model = model_that_reads_the_file();
    let workspace = workspace(Wire::Chat, &model, "  context_window: 8000\n");
    let file = std::fs::read_to_string(workspace.path("agent.yaml")).expect("the agent file");
    workspace.write("agent.yaml", file.replace(super::TODO, ""));
    run_with_a_long_file(&workspace, &model, &[]);
}

#[test]
fn what_cannot_be_attached_is_named_and_the_model_is_not_asked() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let workspace = workspace(Wire::Chat, &model, "");
    workspace.write("binary", b"\xff\x00");
    let nine: Vec<&str> = ["Hi"].into_iter().chain(["--attach", "agent.yaml"].repeat(9)).collect();
    let rows: [(&[&str], i32, &str); 8] = [
        (&["Hi", "--attach", "none.txt"], 2, "error: 'none.txt' "),
        (&["Hi", "--attach", "binary"], 2, "error: 'binary' is neither text nor an image\n"),
        (&["Hi", "--attach", "todo://99"], 66, "error: `todo://99` cannot be read: "),
        (&nine, 2, "error: a message can have 8 attachments, not 9\n"),
        (&["--prompt", "todo:nope"], 66, "error: there is no prompt 'todo:nope'\nhelp: `wharf prompts`"),
        (&["--prompt", "todo:plan_my_day", "x=1"], 2, "`x`"),
        (&["--prompt", "todo:plan_my_day", "Hello"], 2, "Hello"),
        (&["Hi", "--prompt", "todo:plan_my_day"], 2, "cannot be used with"),
    ];
    for (words, code, message) in rows {
        let output = workspace.wharf(&[&["run"], words].concat());
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{words:?}: {}", stderr(&output));
    }
    assert_eq!(model.requests().len(), 0);
}
