//! Questions of servers during a run: a person answers forms, and the model answers prompts as far as the policy allows.

use super::{CANARY, agent_file, events, names, serve_with_settings, wait_for};
use crate::{
    serve::server::Server,
    servers::workspace::{Workspace, tool},
};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::thread;

/// Servers of these eras ask in different ways.
const ERAS: [&str; 2] = ["legacy", "modern"];

fn python() -> String {
    tool("python-2/bin/python").display().to_string()
}

/// The server that asks, as the only source. `more` are further keys of the agent file.
fn asking(model: &ScriptedModel, era: &str, more: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/chat/asking_server.py");
    let entry = format!(
        "{{name: shop, description: d, type: mcp, server: s, era: {era}, command: '{}', args: ['{script}']}}",
        python()
    );
    agent_file(model, &format!("approval: {{default: allow}}\n{more}tools:\n  - {entry}\n"))
}

fn settings() -> String {
    format!("[grants]\ncommands = [\"{}\"]\n", python())
}

/// Starts a gateway with the server that asks, and waits until it has the tools.
fn gateway(agent_file: &str) -> Server {
    let server = serve_with_settings(agent_file, &settings());
    wait_for("the server", || {
        let (_, tools) = server.ask("GET", "/api/v1/tools", None);
        tools["items"].as_array().filter(|it| !it.is_empty()).map(|_| ())
    });
    server
}

/// A model that calls one tool, answers `more`, and then ends.
fn model(tool: &str, arguments: &str, more: &[&str]) -> ScriptedModel {
    let mut replies = vec![Reply::calls(Wire::Chat, &[("c1", tool, arguments)])];
    replies.extend(more.iter().map(|it| Reply::text(Wire::Chat, it)));
    replies.push(Reply::text(Wire::Chat, "Finished."));
    ScriptedModel::start(replies)
}

/// Sends a message, and answers the questions of the run as `answer` says. Returns the events.
fn converse(server: &Server, answer: impl Fn(&Server, &Value) + Sync) -> Vec<super::SentEvent> {
    thread::scope(|scope| {
        let running = scope.spawn(|| super::send(server, &json!({ "message": "Go" })));
        let question = wait_for("the question", || {
            let (_, open) = server.ask("GET", "/api/v1/approvals", None);
            open["items"].get(0).cloned()
        });
        answer(server, &question);
        events(&running.join().expect("a response"))
    })
}

fn post(server: &Server, question: &Value, answer: &Value) -> (u16, Value) {
    let path = format!("/api/v1/approvals/{}", question["approval_id"].as_str().expect("an id"));
    server.ask("POST", &path, Some(answer))
}

/// Returns what the model is model_input about its call.
fn model_input(model: &ScriptedModel) -> String {
    model.requests().last().expect("a request").body["messages"].to_string()
}

#[test]
fn a_person_fills_in_the_form_of_a_server() {
    for era in ERAS {
        let model = model("shop__order", "{}", &[]);
        let server = gateway(&asking(&model, era, ""));
        let events = converse(&server, |server, question| {
            assert_eq!(
                (&question["kind"], &question["source"]),
                (&json!("form"), &json!("shop")),
                "{question}"
            );
            assert_eq!((&question["message"], &question["call_id"]), (&json!("Which size?"), &json!("c1")));
            for (answer, expected) in [
                (json!({ "action": "accept", "content": { "size": "large" } }), 422),
                (json!({ "action": "accept" }), 422),
                (json!({ "action": "maybe" }), 422),
                (json!({ "decision": "allow", "digest": "0" }), 400),
            ] {
                assert_eq!(post(server, question, &answer).0, expected, "{era}: {answer}");
            }
            let (status, said) =
                post(server, question, &json!({ "action": "accept", "content": { "size": 43 } }));
            assert_eq!((status, &said["decided_by"]), (200, &json!("operator")), "{said}");
        });
        assert!(names(&events).contains(&"input_request"), "{era}: {events:?}");
        assert!(model_input(&model).contains("ordered size 43"), "{era}: {}", model_input(&model));
        let done = &events.last().expect("an end").2;
        assert_eq!((&done["success"], &done["turns"]), (&json!(true), &json!(2)), "{era}: {done}");
    }
}

#[test]
fn a_declined_form_is_a_result_for_the_model() {
    for era in ERAS {
        let model = model("shop__order", "{}", &[]);
        let server = gateway(&asking(&model, era, ""));
        let events = converse(&server, |server, question| {
            assert_eq!(post(server, question, &json!({ "action": "decline" })).0, 200);
        });
        assert!(!model_input(&model).contains("ordered size"), "{era}: {}", model_input(&model));
        assert_eq!(events.last().expect("an end").2["success"], true, "{era}");
        let notes: Vec<&Value> = events
            .iter()
            .filter(|(_, name, _)| name == "context")
            .map(|(.., data)| &data["message"])
            .collect();
        assert!(notes.contains(&&json!("shop asked for input, which was declined")), "{era}: {notes:?}");
    }
}

#[test]
fn a_server_uses_the_model_if_a_person_allows_it() {
    for (era, tool) in [("legacy", "shop__paint_by_request"), ("modern", "shop__paint_by_result")] {
        let model = model(tool, "{}", &["Blue."]);
        let server = gateway(&asking(&model, era, "sampling: ask\n"));
        let events = converse(&server, |server, question| {
            assert_eq!(question["kind"], "sampling", "{question}");
            let prompt = question["prompt"].to_string();
            assert!(prompt.contains("Name a colour") && !prompt.contains(CANARY), "{question}");
            assert_eq!(post(server, question, &json!({ "action": "accept" })).0, 200);
        });
        assert!(model_input(&model).contains("Blue."), "{era}: {}", model_input(&model));
        let sample = &model.requests()[1].body;
        assert!(sample["tools"].is_null() && !sample.to_string().contains(CANARY), "{era}: {sample}");
        assert!(sample.to_string().contains("Name a colour"), "{era}: {sample}");
        let most = sample["max_tokens"].as_u64().expect("a limit");
        assert!(most <= 1_024, "{era}: {sample}");
        let done = &events.last().expect("an end").2;
        assert_eq!(done["usage"]["input"], 30, "three requests count: {era}: {done}");
    }
}

#[test]
fn the_policy_decides_about_servers_that_use_the_model() {
    // Policy, number of questions of the server, number of requests to the model, words of the result.
    for (policy, count, requests, expected) in [
        ("", 1, 2, "error"),
        ("sampling: deny\n", 1, 2, "error"),
        ("sampling: {other: allow}\n", 1, 2, "does not allow sampling"),
        ("sampling: {shop: allow}\n", 1, 3, "Blue."),
        ("sampling: allow\n", 6, 7, "the call has asked the model too often"),
    ] {
        let model = model("shop__paint_by_request", &json!({ "count": count }).to_string(), &["Blue."; 5]);
        let server = gateway(&asking(&model, "legacy", policy));
        let (status, done) = super::ask(&server, "Go");
        assert_eq!((status, &done["success"]), (200, &json!(true)), "{policy}: {done}");
        let model_input = model.requests().iter().rev().find_map(|it| {
            let text = it.body["messages"].to_string();
            text.contains("tool_call_id").then_some(text)
        });
        let model_input = model_input.expect("a result");
        assert!(model_input.contains(expected), "{policy}: {model_input}");
        assert_eq!(model.requests().len(), requests, "{policy}: {model_input}");
    }
}

#[test]
fn nobody_at_the_client_means_no_answer() {
    let model = model("shop__order", "{}", &[]);
    let server = gateway(&asking(&model, "legacy", ""));
    let body = json!({ "model": "wharf", "messages": [{ "role": "user", "content": "Go" }] });
    let (status, answer) = server.ask("POST", "/v1/chat/completions", Some(&body));
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("Finished.")), "{answer}");
    assert!(!model_input(&model).contains("ordered size"), "{}", model_input(&model));
}

#[tokio::test]
async fn a_run_without_a_terminal_lets_servers_use_the_model() {
    for (era, tool) in [("legacy", "shop__paint_by_request"), ("modern", "shop__paint_by_result")] {
        let model = model(tool, "{}", &["Blue."]);
        let workspace = Workspace::with(&asking(&model, era, "sampling: allow\n")).set("MODEL_KEY", CANARY);
        std::fs::write(workspace.make_folder("state").join("wharf.toml"), settings()).expect("a file");
        let run = workspace.wharf_with(&["run", "Go"]).await;
        run.check(0, "Finished.");
        assert!(model_input(&model).contains("Blue."), "{era}: {}", model_input(&model));
    }
}
