//! Conversations that are kept: they continue, belong to their principal, and hold no secrets.

use super::{
    ANN, BOB, CANARY, TODO, agent_file, ask_as, events, names, on_both_engines, send, serve_callers, wait_for,
};
use scripted_model::{Action, Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpStream,
};

fn chat(server: &crate::serve::server::Server, token: &str, body: &Value) -> (u16, Value) {
    ask_as(server, token, "POST", "/api/v1/chat", Some(body))
}

#[test]
fn a_conversation_continues_and_belongs_to_its_principal() {
    on_both_engines(|args| {
        let model = ScriptedModel::start(vec![
            Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#)]),
            Reply::text(Wire::Chat, "One."),
            Reply::text(Wire::Chat, "Two."),
        ]);
        let server = serve_callers(&agent_file(&model, TODO), args);
        let (status, first) = chat(&server, ANN, &json!({ "message": "Buy eggs\nsoon", "stream": false }));
        assert_eq!((status, &first["final_output"]), (200, &json!("One.")), "{first}");
        let id = first["conversation_id"].as_str().expect("an id").to_owned();
        let again = json!({ "message": "And then?", "stream": false, "thread_id": id });
        let (status, second) = chat(&server, ANN, &again);
        assert_eq!((status, &second["conversation_id"]), (200, &json!(id)), "{second}");
        let request = model.requests()[2].body.to_string();
        for part in ["Buy eggs", "todo__create_todo", "One.", "And then?"] {
            assert!(request.contains(part), "{part} is not in {request}");
        }
        let path = format!("/api/v1/conversations/{id}");
        let (_, shown) = ask_as(&server, ANN, "GET", &path, None);
        assert_eq!((&shown["title"], &shown["state"]), (&json!("Buy eggs"), &json!("idle")), "{shown}");
        assert_eq!((&shown["provider"], &shown["usage"]["input"]), (&json!("openai"), &json!(30)), "{shown}");
        let (_, entries) = ask_as(&server, ANN, "GET", &format!("{path}/entries"), None);
        let kinds: Vec<&str> = entries["items"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|it| it["kind"].as_str())
            .collect();
        assert_eq!(
            kinds,
            [
                "context", "user", "answer", "started", "result", "answer", "ending", "user", "answer",
                "ending"
            ]
        );
        for (method, path, body) in [
            ("GET", path.clone(), None),
            ("GET", format!("{path}/entries"), None),
            ("GET", format!("{path}/stream"), None),
            ("POST", format!("{path}/cancel"), None),
            ("PATCH", path.clone(), Some(json!({ "title": "x" }))),
            ("DELETE", path.clone(), None),
            ("POST", "/api/v1/chat".to_owned(), Some(again.clone())),
        ] {
            let (status, problem) = ask_as(&server, BOB, method, &path, body.as_ref());
            assert_eq!(status, 404, "{method} {path}: {problem}");
        }
        let (_, others) = ask_as(&server, BOB, "GET", "/api/v1/conversations", None);
        assert_eq!(others["items"], json!([]));
        let (_, all) = server.ask("GET", "/api/v1/conversations", None);
        assert_eq!(all["items"][0]["id"], json!(id), "operators see all");
        let (status, renamed) = ask_as(&server, ANN, "PATCH", &path, Some(&json!({ "title": "Food" })));
        assert_eq!((status, &renamed["title"]), (200, &json!("Food")));
        assert_eq!(ask_as(&server, ANN, "DELETE", &path, None).0, 204);
        assert_eq!(ask_as(&server, ANN, "GET", &path, None).0, 404);
        assert_eq!(server.terminate(), Some(0));
    });
}

#[test]
fn a_second_message_is_refused_and_cancel_ends_the_run() {
    let model = ScriptedModel::start(vec![Reply::stream("").then(Action::Hang)]);
    let server = serve_callers(&agent_file(&model, TODO), &[]);
    let (status, created) =
        ask_as(&server, ANN, "POST", "/api/v1/conversations", Some(&json!({ "title": "Mine" })));
    assert_eq!((status, &created["state"]), (201, &json!("idle")));
    let id = created["id"].as_str().expect("an id");
    let path = format!("/api/v1/conversations/{id}");
    let message = json!({ "message": "Hi", "conversation_id": id, "stream": false });
    std::thread::scope(|scope| {
        let running = scope.spawn(|| chat(&server, ANN, &message));
        model.wait_for_requests(1);
        let (status, busy) = chat(&server, ANN, &message);
        assert_eq!((status, &busy["type"]), (409, &json!("conversation_busy")), "{busy}");
        let (_, shown) = ask_as(&server, ANN, "GET", &path, None);
        assert_eq!(shown["state"], "running");
        let run_id = shown["run_id"].as_str().expect("a run");
        assert_eq!(busy["run_id"], run_id, "{busy}");
        let (status, _) = ask_as(&server, ANN, "POST", &format!("{path}/cancel"), None);
        assert_eq!(status, 202);
        let (status, done) = running.join().expect("an answer");
        assert_eq!((status, &done["status"]), (409, &json!("cancelled")), "{done}");
    });
    model.wait_for_abandoned(1);
    assert_eq!(ask_as(&server, ANN, "POST", &format!("{path}/cancel"), None).0, 409);
    assert_eq!(ask_as(&server, ANN, "GET", &format!("{path}/stream"), None).0, 204);
}

#[test]
fn an_idempotency_key_makes_a_run_once() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Once.")]);
    let server = serve_callers(&agent_file(&model, TODO), &[]);
    let ask = |message: &str| {
        let token = format!("Authorization: Bearer {ANN}");
        let headers = [&token, "Content-Type: application/json", "Idempotency-Key: k1"];
        let body = json!({ "message": message, "stream": false });
        server.ask_with("POST", "/api/v1/chat", &headers, Some(&body))
    };
    let (first, second) = (ask("Hi"), ask("Hi"));
    assert_eq!((first.0, &first.1["final_output"]), (200, &json!("Once.")));
    assert_eq!(first, second);
    assert_eq!(ask("Ho").0, 422);
    assert_eq!(model.requests().len(), 1);
}

/// A run that failed is answered alike when its key is repeated.
#[test]
fn a_repeated_key_gets_the_end_of_a_failed_run_in_the_same_form() {
    let model = ScriptedModel::start(vec![Reply::error(401, &json!({ "error": { "message": "no" } }))]);
    let server = serve_callers(&agent_file(&model, TODO), &[]);
    let ask = || {
        let token = format!("Authorization: Bearer {ANN}");
        let headers = [&token, "Content-Type: application/json", "Idempotency-Key: k1"];
        let response = server.raw("POST", "/api/v1/chat", &headers, Some(&json!({ "message": "Hi" })));
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        let head = head.to_lowercase();
        let media_type = head.lines().find_map(|it| it.strip_prefix("content-type: ")).map(str::to_owned);
        (head.lines().next().map(str::to_owned), media_type, body.to_owned())
    };
    let (first, second) = (ask(), ask());
    assert_eq!(
        (first.0.as_deref(), first.1.as_deref()),
        (Some("http/1.1 502 bad gateway"), Some("application/json"))
    );
    assert_eq!(first, second);
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn a_client_attaches_again_after_the_last_event_it_has_read() {
    let calls = Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#)]);
    let rules = "approval: {ask: ['todo:create_*']}\n";
    let model = ScriptedModel::start(vec![calls, Reply::text(Wire::Chat, "Created.")]);
    let server = serve_callers(&agent_file(&model, &format!("{rules}{TODO}")), &[]);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| send(&server, &json!({ "message": "Buy eggs" })));
        let question = wait_for("the question", || {
            let (_, open) = server.ask("GET", "/api/v1/approvals", None);
            open["items"].get(0).cloned()
        });
        let path =
            format!("/api/v1/conversations/{}/stream", question["conversation_id"].as_str().expect("an id"));
        let token = format!("Authorization: Bearer {}", server.token);
        let mut attached = TcpStream::connect(&server.address).expect("a connection");
        let address = &server.address;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\n{token}\r\nLast-Event-ID: 2\r\nConnection: close\r\n\r\n"
        );
        attached.write_all(request.as_bytes()).expect("a request");
        let mut beginning = vec![0; 4_096];
        let read = attached.read(&mut beginning).expect("the first events");
        beginning.truncate(read);
        let decision = json!({ "decision": "allow", "digest": question["digest"] });
        let id = question["approval_id"].as_str().expect("an id");
        let (status, decided) = server.ask("POST", &format!("/api/v1/approvals/{id}"), Some(&decision));
        assert_eq!((status, &decided["decision"]), (200, &json!("allow")));
        attached.read_to_end(&mut beginning).expect("the other events");
        let first = events(&first.join().expect("events"));
        let attached = events(&String::from_utf8_lossy(&beginning));
        assert_eq!(
            names(&first),
            [
                "started",
                "usage",
                "tool_call",
                "approval_request",
                "tool_call",
                "tool_call",
                "response_delta",
                "usage",
                "done"
            ]
        );
        assert_eq!(attached, first[2..], "the same events with the same ids");
    });
}

#[test]
fn no_secret_reaches_the_model_the_record_or_a_client() {
    on_both_engines(|args| {
        let title = format!(r#"{{"title":"{CANARY}"}}"#);
        let model = ScriptedModel::start(vec![
            Reply::calls(
                Wire::Chat,
                &[
                    ("c1", "todo__create_todo", &title),
                    ("c2", "todo__update_todo", &format!(r#"{{"id":"{CANARY}"}}"#)),
                ],
            ),
            Reply::text(Wire::Chat, "Done."),
        ]);
        let server = serve_callers(&agent_file(&model, TODO), args);
        let (_, done) = chat(&server, ANN, &json!({ "message": "Go", "stream": false }));
        let id = done["conversation_id"].as_str().expect("an id");
        let streamed = {
            let token = format!("Authorization: Bearer {ANN}");
            let headers = [token.as_str(), "Content-Type: application/json"];
            server.raw("POST", "/api/v1/chat", &headers, Some(&json!({ "message": "Again" })))
        };
        let (_, entries) = ask_as(&server, ANN, "GET", &format!("/api/v1/conversations/{id}/entries"), None);
        let (_, calls) = server.ask("GET", "/api/v1/calls", None);
        let results = model.requests()[1].body["messages"].as_array().expect("messages").clone();
        let results: Vec<Value> = results.into_iter().filter(|it| it["role"] == "tool").collect();
        assert_eq!(results.len(), 2, "{results:?}");
        for (what, text) in [
            ("done", done.to_string()),
            ("events", streamed),
            ("entries", entries.to_string()),
            ("calls", calls.to_string()),
            ("results for the model", format!("{results:?}")),
            ("log", server.log()),
        ] {
            assert!(!text.contains("canary"), "the secret is in the {what}: {text}");
        }
        assert!(entries.to_string().contains("***"), "{entries}");
    });
}
