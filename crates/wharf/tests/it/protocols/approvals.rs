//! Approvals with published clients: a person decides about a call, and the run goes on.

use super::{PublishedClient, read};
use crate::{
    chat::{CANARY, TODO, agent_file, begin, serve_with_settings, todos, wait_for},
    serve::server::Server,
};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::process::Stdio;

const RULES: &str = "approval: {ask: ['todo:create_*']}\n";

fn model() -> ScriptedModel {
    ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"buy eggs"}"#)]),
        Reply::text(Wire::Chat, "Finished."),
    ])
}

fn gateway(model: &ScriptedModel, settings: &str) -> Server {
    serve_with_settings(&agent_file(model, &format!("{RULES}{TODO}")), settings)
}

/// Checks the end of a run whose call a person allowed or denied.
fn check_end(
    client: PublishedClient,
    is_allowed: bool,
    seen: &Value,
    server: &Server,
    model: &ScriptedModel,
) {
    assert!(seen["error"].is_null(), "{client:?}: {seen}");
    let text = seen["text"].as_str().unwrap_or_default();
    assert!(text.ends_with("Finished."), "{client:?}: {seen}");
    assert_eq!(seen["finish"], "stop", "{client:?}: {seen}");
    let expected: &[&str] = if is_allowed { &["buy eggs"] } else { &[] };
    assert_eq!(todos(server), expected, "{client:?}: {seen}");
    let model_input = model.requests()[1].body.to_string();
    match is_allowed {
        true => assert!(
            model_input.contains("buy eggs") && !model_input.contains("denied: operator"),
            "{client:?}: {model_input}"
        ),
        false => assert!(
            model_input.contains("denied: operator did not allow this call: as tested."),
            "{client:?}: {model_input}"
        ),
    }
    assert_eq!(model.requests().len(), 2, "{client:?}");
    assert!(!server.log().contains(CANARY));
}

#[test]
fn a_user_interface_asks_its_user_and_continues_the_run() {
    for client in [PublishedClient::AiSdk, PublishedClient::AgUi] {
        for is_allowed in [true, false] {
            let model = model();
            let server = gateway(&model, "");
            let seen = client.run(&server, if is_allowed { "allow" } else { "deny" });
            let asked = json!([{ "tool": "todo__create_todo", "input": { "title": "buy eggs" } }]);
            assert_eq!(seen["asked"], asked, "{client:?}: {seen}");
            assert_eq!(seen["details"], json!(["the rule 'todo:create_*' asks"]), "{client:?}: {seen}");
            let calls = seen["calls"].as_array().map(Vec::len);
            assert_eq!(calls, Some(1), "a call is sent once: {client:?}: {seen}");
            check_end(client, is_allowed, &seen, &server, &model);
            let (_, kept) = server.ask("GET", "/api/v1/conversations", None);
            assert_eq!(kept["items"][0]["state"], "idle", "{client:?}: {kept}");
        }
    }
}

#[test]
fn others_decide_for_a_client_of_openai() {
    for client in [PublishedClient::OpenAiPython, PublishedClient::OpenAiNode] {
        for is_allowed in [true, false] {
            let model = model();
            let server = gateway(&model, "[agent]\nopenai_approval_wait = 120\n");
            let mut command = client.command(&server, "stream");
            let running =
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the client runs");
            let question = wait_for("the question", || {
                let (_, open) = server.ask("GET", "/api/v1/approvals", None);
                open["items"].get(0).cloned()
            });
            assert_eq!(question["arguments"], json!({ "title": "buy eggs" }), "{question}");
            let path = format!("/api/v1/approvals/{}", question["approval_id"].as_str().expect("an id"));
            let stale = json!({ "decision": "allow", "digest": "0".repeat(64) });
            assert_eq!(server.ask("POST", &path, Some(&stale)).0, 409);
            let word = if is_allowed { "allow" } else { "deny" };
            let decision = json!({ "decision": word, "digest": question["digest"], "reason": "as tested" });
            let (status, decided) = server.ask("POST", &path, Some(&decision));
            assert_eq!((status, &decided["decided_by"]), (200, &json!("operator")), "{decided}");
            assert_eq!(server.ask("POST", &path, Some(&decision)).0, 404, "a question is answered once");
            let seen = read(client, &running.wait_with_output().expect("the client ends"));
            check_end(client, is_allowed, &seen, &server, &model);
        }
    }
}

#[test]
fn a_call_of_an_openai_client_is_denied_if_nobody_is_asked() {
    for client in [PublishedClient::OpenAiPython, PublishedClient::OpenAiNode] {
        let model = model();
        let server = gateway(&model, "");
        let seen = client.run(&server, "stream");
        assert_eq!(seen["text"], "Finished.", "{client:?}: {seen}");
        assert_eq!(todos(&server), Vec::<String>::new());
        let model_input = model.requests()[1].body.to_string();
        assert!(
            model_input.contains("denied: the user did not allow this call: nobody is there to ask."),
            "{model_input}"
        );
    }
}

#[test]
fn decisions_that_do_not_fit_are_refused() {
    let model = model();
    let server = gateway(&model, "");
    let user = json!({ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": "Buy eggs" }] });
    let token = format!("Authorization: Bearer {}", server.token);
    let headers = [token.as_str(), "Content-Type: application/json"];
    let first =
        server.raw("POST", "/api/v1/chat/ui", &headers, Some(&json!({ "id": "k", "messages": [user] })));
    assert!(first.contains("tool-approval-request") && first.contains("[DONE]"), "{first}");
    let (_, open) = server.ask("GET", "/api/v1/approvals", None);
    let id = open["items"][0]["approval_id"].clone();
    let answer = |id: &Value, approved: bool| {
        let approval = json!({ "id": id, "approved": approved });
        let part = json!({ "type": "dynamic-tool", "state": "approval-responded", "approval": approval });
        json!({ "id": "k", "messages": [user, { "id": "m2", "role": "assistant", "parts": [part] }] })
    };
    let resume = |id: &Value, thread: &str| {
        json!({ "threadId": thread, "runId": "r2", "messages": [], "tools": [], "context": [],
            "resume": [{ "interruptId": id, "status": "resolved", "payload": { "approved": true } }] })
    };
    for (path, body, expected) in [
        ("/api/v1/chat/ui", answer(&json!("0190"), true), 404),
        ("/api/v1/chat/ui", json!({ "id": "k", "messages": [user] }), 409),
        ("/api/v1/chat/ag-ui", resume(&id, "another"), 404),
        ("/api/v1/chat/ag-ui", resume(&json!("0190"), "k"), 404),
        ("/api/v1/chat", json!({ "approvals": [{ "approval_id": id, "decision": "allow" }] }), 422),
        ("/api/v1/chat", json!({ "approvals": 1 }), 400),
    ] {
        let (status, problem) = server.ask("POST", path, Some(&body));
        assert_eq!(status, expected, "{path} {body}: {problem}");
    }
    assert_eq!(todos(&server), Vec::<String>::new(), "nothing is executed before the decision");
    let continued = server.raw("POST", "/api/v1/chat/ui", &headers, Some(&answer(&id, true)));
    assert!(continued.contains("tool-output-available") && continued.contains("Finished."), "{continued}");
    assert!(!continued.contains("tool-input-available"), "the client has the call: {continued}");
    let (status, problem) = server.ask("POST", "/api/v1/chat/ui", Some(&answer(&id, true)));
    assert_eq!((status, &problem["type"]), (409, &json!("approval_stale")), "{problem}");
    assert_eq!(todos(&server), ["buy eggs"]);
}

#[test]
fn decisions_in_place_of_a_message_continue_the_run_with_the_limits_of_its_request() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"buy eggs"}"#)]),
        Reply::text(Wire::Chat, "So far."),
    ]);
    let server = gateway(&model, "");
    let format = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let body = json!({ "message": "Buy eggs", "limits": { "max_turns": 1 }, "response_format": format,
        "on_disconnect": "continue", "stream": true });
    let waiting = begin(&server, &server.token, &body);
    let question = wait_for("the question", || {
        let (_, open) = server.ask("GET", "/api/v1/approvals", None);
        open["items"].get(0).cloned()
    });
    drop(waiting);
    let decision =
        json!({ "approval_id": question["approval_id"], "decision": "allow", "digest": question["digest"] });
    let body =
        json!({ "conversation_id": question["conversation_id"], "approvals": [decision], "stream": false });
    let (status, done) = server.ask("POST", "/api/v1/chat", Some(&body));
    assert_eq!(status, 200, "{done}");
    assert_eq!(todos(&server), ["buy eggs"]);
    let last = &model.requests()[1].body;
    assert!(last.to_string().contains("The limit 'limits.max_turns' is reached."), "{last}");
    assert_eq!(last["tool_choice"]["function"]["name"], "wharf__answer", "{last}");
}
