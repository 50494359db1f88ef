//! The scenarios of a conversational agent, one test each.

use super::{CANARY, TODO, agent_file, ask, events, names, send, serve};
use scripted_model::{Action, Reply, ScriptedModel, Wire};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

#[test]
fn a_todo_is_created_by_conversation() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"buy eggs"}"#)]),
        Reply::text(Wire::Chat, "I've created it."),
    ]);
    let server = serve(&agent_file(&model, TODO));
    let response = send(&server, &json!({ "message": "Remind me to buy eggs", "request_id": "req_001" }));
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let head = response.to_lowercase();
    assert!(head.contains("content-type: text/event-stream") && head.contains("x-run-id: "), "{response}");
    let events = events(&response);
    assert_eq!(
        names(&events),
        ["started", "usage", "tool_call", "tool_call", "response_delta", "usage", "done"]
    );
    let ids: Vec<u64> = events.iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids, (1..=7).collect::<Vec<u64>>());
    let (begun, completed) = (&events[2].2, &events[3].2);
    assert_eq!((&begun["status"], &begun["source"]), (&json!("in_progress"), &json!("todo")));
    assert_eq!((&completed["status"], &completed["call_id"]), (&json!("completed"), &json!("c1")));
    assert!(completed["execution_duration"].as_f64().is_some(), "{completed}");
    let done = &events[6].2;
    assert_eq!((&done["final_output"], &done["success"]), (&json!("I've created it."), &json!(true)));
    assert_eq!((&done["request_id"], &done["turns"]), (&json!("req_001"), &json!(2)));
    let (_, todos) = server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&json!({})));
    assert_eq!(todos["structured_content"]["todos"][0]["title"], "buy eggs");
    let thread = done["conversation_id"].as_str().expect("an id");
    let (_, calls) = server.ask("GET", &format!("/api/v1/calls?thread_id={thread}"), None);
    let call = &calls["items"][0];
    assert_eq!((&call["tool_name"], &call["via"]), (&json!("create_todo"), &json!("agent")));
    assert_eq!((&call["status"], &call["principal"]), (&json!("success"), &json!("operator")));
}

#[test]
fn an_answer_without_a_stream_is_one_document() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Hello, sk-canary-7f3e9a.")]);
    let server = serve(&agent_file(&model, TODO));
    let (status, done) = ask(&server, "Hi \u{7}there");
    assert_eq!((status, &done["final_output"]), (200, &json!("Hello, ***.")));
    assert!(model.requests()[0].body.to_string().contains("Hi there"));
    let unkept = json!({ "message": "Hi", "stream": false, "keep": false });
    assert_eq!(server.ask("POST", "/api/v1/chat", Some(&unkept)).0, 200);
    let (_, kept) = server.ask("GET", "/api/v1/conversations", None);
    assert_eq!(kept["items"].as_array().map(Vec::len), Some(1), "only the first run is kept: {kept}");
    for (body, expected) in [
        (json!({ "message": "\u{1}" }), 422),
        (json!({}), 422),
        (json!({ "message": 1 }), 400),
        (json!({ "message": "x".repeat(70_000) }), 413),
        (json!({ "message": "x", "tools": [] }), 400),
        (json!({ "message": "x", "limits": { "max_turns": 0 } }), 422),
        (json!({ "message": "x", "on_disconnect": "wait" }), 422),
    ] {
        let (status, problem) = server.ask("POST", "/api/v1/chat", Some(&body));
        assert_eq!(status, expected, "{problem}");
    }
    assert!(!server.log().contains(CANARY));
}

#[test]
fn an_agent_without_a_model_says_what_to_add() {
    let server = serve(TODO);
    let (status, problem) = ask(&server, "Hi");
    assert_eq!(status, 503, "{problem}");
    assert_eq!(problem["detail"], "the agent needs 'model'");
    assert!(problem["hint"].as_str().is_some_and(|it| it.contains("provider: ollama")), "{problem}");
}

#[test]
fn the_model_continues_without_a_server_that_is_down() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "I cannot reach the list.")]);
    let down = "tools:\n  - name: notes\n    description: Notes\n    type: mcp\n    server: notes\n    \
        transport: http\n    url: http://127.0.0.1:9/mcp\n";
    let server = serve(&agent_file(&model, down));
    let events = events(&send(&server, &json!({ "message": "Hi" })));
    assert_eq!(names(&events), ["started", "error", "response_delta", "usage", "done"]);
    assert_eq!(events[1].2["error_type"], "mcp_connection_error");
    assert_eq!(events[4].2["success"], true);
}

#[test]
fn an_unavailable_model_opens_its_breaker_and_one_probe_closes_it() {
    let broken = || Reply::error(401, &json!({ "error": { "message": "no" } }));
    let down = || Reply::error(500, &json!({ "error": { "message": "down" } })).header("retry-after", "0");
    let model = ScriptedModel::with(move |number, _| match number {
        0 => broken(),
        1..=12 => down(),
        _ => Reply::text(Wire::Chat, "Back."),
    });
    let server = serve(&agent_file(&model, TODO));
    let (status, done) = ask(&server, "Hi");
    assert_eq!((status, &done["error"]["error_type"]), (502, &json!("model_api_error")), "{done}");
    for _ in 0..3 {
        let (status, done) = ask(&server, "Hi");
        assert_eq!((status, &done["status"]), (502, &json!("failed")), "{done}");
    }
    let breaker = |server: &crate::serve::server::Server| {
        let (_, breakers) = server.ask("GET", "/api/v1/breakers?source=openai", None);
        breakers["items"][0].clone()
    };
    let open = breaker(&server);
    assert_eq!((&open["service_name"], &open["state"]), (&json!("openai"), &json!("OPEN")), "{open}");
    assert_eq!(
        (&open["failure_threshold"], &open["recovery_timeout"]),
        (&json!(3), &json!("PT60S")),
        "{open}"
    );
    let refused = send(&server, &json!({ "message": "Hi" }));
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.to_lowercase().contains("\r\nretry-after: "), "{refused}");
    assert_eq!(model.requests().len(), 13, "an open breaker sends nothing");
    let (status, _) = server.ask("POST", "/api/v1/breakers/openai/reset", None);
    assert_eq!(status, 200);
    assert_eq!(ask(&server, "Hi").0, 200);
    assert_eq!(breaker(&server)["state"], "CLOSED");
}

#[test]
fn a_client_that_disconnects_cancels_its_run() {
    let model = ScriptedModel::start(vec![Reply::stream("").then(Action::Hang)]);
    let server = serve(&agent_file(&model, TODO));
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    let body = json!({ "message": "Hi" }).to_string();
    let head = format!(
        "POST /api/v1/chat HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("a request");
    model.wait_for_requests(1);
    let mut beginning = [0; 512];
    let read = stream.read(&mut beginning).expect("the first event");
    assert!(String::from_utf8_lossy(&beginning[..read]).starts_with("HTTP/1.1 200"));
    drop(stream);
    model.wait_for_abandoned(1);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_changed_agent_file_changes_the_model_of_the_next_run() {
    let first = ScriptedModel::start(vec![Reply::text(Wire::Chat, "one")]);
    let second = ScriptedModel::start(vec![Reply::text(Wire::Chat, "two")]);
    let server = serve(&agent_file(&first, TODO));
    assert_eq!(ask(&server, "Hi").1["final_output"], "one");
    let file = server.folder.path().join("agent.yaml");
    std::fs::write(file, agent_file(&second, &format!("instructions:\n  inline: Be brief.\n{TODO}")))
        .expect("an agent file");
    let until = Instant::now() + Duration::from_secs(60);
    while ask(&server, "Hi").1["final_output"] != "two" {
        assert!(Instant::now() < until, "the change is not applied");
    }
    assert!(second.requests()[0].body.to_string().contains("Be brief."));
}
