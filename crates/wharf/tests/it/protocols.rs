//! Tests the agent behind other people's protocols, with their published clients. `cargo xtask provision` installs them.

mod approvals;
mod openai_errors;
mod streams;

use crate::{
    chat::{CANARY, TODO, agent_file, serve},
    serve::server::Server,
    servers::workspace::tool,
};
use scripted_model::{Action, Finish, Reply, ScriptedModel, Step, Wire, render, text};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::{Command, Output},
};

/// Programs that use a client as published. Each prints one JSON object.
const OPENAI_PYTHON: &str = include_str!("protocols/openai.py");
const OPENAI_NODE: &str = include_str!("protocols/openai.mjs");
const AI_SDK: &str = include_str!("protocols/ai_sdk.mjs");
const AG_UI: &str = include_str!("protocols/ag_ui.mjs");

/// Published client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PublishedClient {
    OpenAiPython,
    OpenAiNode,
    AiSdk,
    AgUi,
}

const ALL: [PublishedClient; 4] = [
    PublishedClient::OpenAiPython,
    PublishedClient::OpenAiNode,
    PublishedClient::AiSdk,
    PublishedClient::AgUi,
];

impl PublishedClient {
    /// Runs the client. `mode` says what it does.
    fn run(self, server: &Server, mode: &str) -> Value {
        let output = self.command(server, mode).output().expect("the client runs");
        read(self, &output)
    }

    fn command(self, server: &Server, mode: &str) -> Command {
        let node = || tool("node").join("node_modules/node/bin/node");
        let mut command = match self {
            PublishedClient::OpenAiPython => {
                let mut command = Command::new(tool("openai-python").join("bin/python"));
                command.args(["-c", OPENAI_PYTHON]);
                command
            }
            PublishedClient::OpenAiNode => script(node(), "openai-node", OPENAI_NODE),
            PublishedClient::AiSdk => script(node(), "ai-sdk", AI_SDK),
            PublishedClient::AgUi => script(node(), "ag-ui", AG_UI),
        };
        command.arg(mode).env("WHARF_URL", format!("http://{}", server.address));
        command.env("WHARF_TOKEN", &server.token);
        command
    }

    fn is_openai(self) -> bool {
        matches!(self, PublishedClient::OpenAiPython | PublishedClient::OpenAiNode)
    }
}

/// Runs a script in the folder of a package, where its imports are found.
fn script(node: PathBuf, package: &str, text: &str) -> Command {
    let mut command = Command::new(node);
    command.current_dir(tool(package)).args(["--input-type=module", "--eval", text, "--"]);
    command
}

fn read(client: PublishedClient, output: &Output) -> Value {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{client:?}: {stdout}\n{stderr}"))
}

#[test]
fn every_client_gets_text_and_server_side_tools() {
    for client in ALL {
        let model = ScriptedModel::start(vec![
            Reply::answer(
                Wire::Chat,
                &[
                    Step::Think("Hm.".into()),
                    text("Let me see."),
                    scripted_model::call("c1", "todo__create_todo", r#"{"title":"buy eggs"}"#),
                    Step::End(Finish::ToolCalls),
                    Step::Usage,
                ],
            ),
            Reply::text(Wire::Chat, "I've created **it**, sk-canary-7f3e9a.").in_chunks(9),
        ]);
        let server = serve(&agent_file(&model, TODO));
        let seen = client.run(&server, "stream");
        let content = seen["text"].as_str().unwrap_or_default();
        assert!(content.starts_with("Let me see."), "{client:?}: {seen}");
        assert!(content.contains("I've created **it**"), "{client:?}: {seen}");
        assert_eq!(seen["finish"], "stop", "{client:?}: {seen}");
        let reasoning = seen["reasoning"].as_str().unwrap_or_default();
        assert!(reasoning.contains("Hm."), "{client:?}: {seen}");
        match client.is_openai() {
            true => {
                assert!(
                    reasoning.contains("→ todo__create_todo title=\"buy eggs\"\n← "),
                    "{client:?}: {seen}"
                );
                let usage = json!({ "prompt": 20, "completion": 10, "total": 30 });
                assert_eq!(seen["usage"], usage, "{client:?}: {seen}");
            }
            false => {
                let call = &seen["calls"][0];
                assert_eq!(call["name"], "todo__create_todo", "{client:?}: {seen}");
                assert_eq!(call["input"]["title"], "buy eggs", "{client:?}: {seen}");
                assert!(
                    call["output"].as_str().is_some_and(|it| it.contains("buy eggs")),
                    "{client:?}: {seen}"
                );
            }
        }
        let (_, todos) = server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&json!({})));
        assert_eq!(todos["structured_content"]["todos"][0]["title"], "buy eggs", "{client:?}");
        assert!(!server.log().contains(CANARY));
    }
}

#[test]
fn the_history_of_an_openai_client_is_sent_to_the_model() {
    for client in [PublishedClient::OpenAiPython, PublishedClient::OpenAiNode] {
        let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Ann.")]);
        let server = serve(&agent_file(&model, &format!("instructions: {{inline: Be brief.}}\n{TODO}")));
        let seen = client.run(&server, "history");
        assert_eq!(seen["text"], "Ann.", "{client:?}: {seen}");
        let body = &model.requests()[0].body;
        let messages = check_history(client, body);
        assert!(
            messages[0]["content"].as_str().is_some_and(|it| it.ends_with("Speak English.")),
            "{messages:?}"
        );
        assert_eq!((&body["temperature"], &body["seed"]), (&json!(0.5), &json!(7)), "{body}");
        assert_eq!((&body["max_tokens"], &body["stop"]), (&json!(50), &json!(["END"])), "{body}");
    }
}

#[test]
fn a_client_of_a_kept_conversation_cannot_change_its_record() {
    for client in [PublishedClient::AiSdk, PublishedClient::AgUi] {
        let model = ScriptedModel::start(vec![
            Reply::text(Wire::Chat, "Hello Ann."),
            Reply::text(Wire::Chat, "Ann."),
        ]);
        let server = serve(&agent_file(&model, &format!("instructions: {{inline: Be brief.}}\n{TODO}")));
        let seen = client.run(&server, "history");
        assert_eq!(seen["text"], "Ann.", "{client:?}: {seen}");
        let body = &model.requests()[1].body;
        check_history(client, body);
        assert!(!body.to_string().contains("forged"), "{client:?}: {body}");
        let (_, kept) = server.ask("GET", "/api/v1/conversations", None);
        assert_eq!(kept["items"].as_array().map(Vec::len), Some(1), "{client:?}: {kept}");
        assert_eq!(kept["items"][0]["title"], "I am Ann.", "{client:?}: {kept}");
    }
}

/// Checks the conversation that the model sees, and returns its messages.
fn check_history(client: PublishedClient, body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let roles: Vec<&str> = messages.iter().filter_map(|it| it["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"], "{client:?}: {body}");
    let texts = messages.iter().map(|it| it["content"].to_string()).collect::<String>();
    for expected in ["Be brief.", "I am Ann.", "Hello Ann.", "Who am I?"] {
        assert!(texts.contains(expected), "{client:?}: {texts}");
    }
    messages
}

#[test]
fn every_client_reports_the_error_of_a_run() {
    for client in ALL {
        let refused = Reply::error(401, &json!({ "error": { "message": "bad key sk-canary-7f3e9a" } }));
        let model = ScriptedModel::start(vec![refused]);
        let server = serve(&agent_file(&model, TODO));
        let seen = client.run(&server, "stream");
        let error = seen["error"].as_str().unwrap_or_default();
        assert!(error.contains("bad key ***"), "{client:?}: {seen}");
        if client.is_openai() {
            assert_eq!((&seen["status"], &seen["code"]), (&json!(502), &json!("model_api_error")), "{seen}");
        }
    }
}

#[test]
fn a_stream_that_breaks_after_text_is_an_error_and_not_repeated() {
    for client in ALL {
        let begun = render(Wire::Chat, &[text("Once upon")]);
        let model = ScriptedModel::start(vec![Reply::stream(begun).then(Action::Cut)]);
        let server = serve(&agent_file(&model, TODO));
        let seen = client.run(&server, "stream");
        assert_eq!(seen["text"], "Once upon", "{client:?}: {seen}");
        assert!(!seen["error"].is_null(), "{client:?}: {seen}");
        assert_eq!(model.requests().len(), 1, "{client:?}: sent text cannot be taken back");
    }
}

#[test]
fn a_client_that_leaves_cancels_the_run() {
    for client in ALL {
        let begun = render(Wire::Chat, &[text("Once upon")]);
        let model = ScriptedModel::start(vec![Reply::stream(begun).then(Action::Hang)]);
        let server = serve(&agent_file(&model, TODO));
        let seen = client.run(&server, "cancel");
        assert_eq!(seen["text"], "Once upon", "{client:?}: {seen}");
        model.wait_for_abandoned(1);
    }
}
