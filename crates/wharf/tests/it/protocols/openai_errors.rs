//! Errors of OpenAI's protocol, repeated requests and whole answers.

use super::PublishedClient;
use crate::chat::{TODO, agent_file, serve, wait_for};
use scripted_model::{Action, Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{io::Write, net::TcpStream, time::Duration};

/// Asks for a completion. Returns status and body.
fn complete(server: &crate::serve::server::Server, body: &Value) -> (u16, Value) {
    server.ask("POST", "/v1/chat/completions", Some(body))
}

#[test]
fn parameters_that_cannot_be_used_are_named() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Hello.")]);
    let server = serve(&agent_file(&model, TODO));
    let user = |content: Value| json!([{ "role": "user", "content": content }]);
    let hi = user("Hi".into());
    let image = |media_type: &str, base64: &str| {
        let url = format!("data:{media_type};base64,{base64}");
        json!([{ "type": "image_url", "image_url": { "url": url } }])
    };
    for (change, status, parameter) in [
        (json!({ "tools": [{ "type": "function", "function": { "name": "f" } }] }), 400, "tools"),
        (json!({ "functions": [{ "name": "f" }] }), 400, "functions"),
        (json!({ "n": 2 }), 400, "n"),
        (json!({ "logprobs": true }), 400, "logprobs"),
        (json!({ "frequency_penalty": 0.5 }), 400, "frequency_penalty"),
        (json!({ "temperature": 3 }), 400, "temperature"),
        (json!({ "max_tokens": 0 }), 400, "max_tokens"),
        (json!({ "stop": ["a", "b", "c", "d", "e"] }), 400, "stop"),
        (json!({ "response_format": { "type": "xml" } }), 400, "response_format"),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": { "type": "text" } } } }),
            400,
            "response_format",
        ),
        (json!({ "spelling": 1 }), 400, "spelling"),
        (json!({ "model": "gpt-5" }), 404, "model"),
        (json!({ "messages": [] }), 400, "messages"),
        (json!({ "messages": user("x".repeat(70_000).into()) }), 413, "messages"),
        (
            json!({ "messages": [{ "role": "tool", "content": "x", "tool_call_id": "c" }] }),
            400,
            "messages[0].role",
        ),
        (
            json!({ "messages": user(json!([{ "type": "image_url", "image_url": { "url": "https://a/b.png" } }])) }),
            400,
            "messages[0].content",
        ),
        (json!({ "messages": user(image("image/svg+xml", "QUJD")) }), 422, "messages[0].content"),
        (json!({ "messages": user(image("image/png", "a picture")) }), 422, "messages[0].content"),
    ] {
        let mut body = json!({ "model": "wharf", "messages": hi });
        for (key, value) in change.as_object().expect("changes") {
            body[key] = value.clone();
        }
        let (seen, answer) = complete(&server, &body);
        let error = &answer["error"];
        assert_eq!((seen, error["param"].as_str()), (status, Some(parameter)), "{change}: {answer}");
        assert_eq!(error["type"], "invalid_request_error", "{answer}");
    }
    let neutral = json!({ "model": "wharf", "messages": hi, "n": 1, "tools": [], "frequency_penalty": 0,
        "presence_penalty": 0.0, "logprobs": false, "user": "ann", "metadata": {}, "stream": null });
    let (status, answer) = complete(&server, &neutral);
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("Hello.")), "{answer}");
    assert_eq!(answer["object"], "chat.completion");
    let (status, answer) = server.ask("GET", "/v1/models/nope", None);
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("model_not_found")));
    let (status, answer) = server.ask_with("GET", "/v1/models", &[], None);
    assert_eq!((status, &answer["error"]["type"]), (401, &json!("authentication_error")), "{answer}");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn structured_answers_and_limits_have_their_place() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "wharf__answer", r#"{"n":7}"#)]),
        Reply::calls(Wire::Chat, &[("c2", "todo__list_todos", "{}")]),
        Reply::text(Wire::Chat, "So far."),
    ]);
    let server = serve(&agent_file(&model, &format!("limits: {{max_turns: 1}}\n{TODO}")));
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
    let (_, answer) =
        complete(&server, &json!({ "model": "wharf", "messages": messages, "response_format": format }));
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!("{\"n\":7}"), &json!("stop"))
    );
    let (_, answer) = complete(&server, &json!({ "model": "wharf", "messages": messages }));
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!("So far."), &json!("length"))
    );
    assert!(
        choice["message"]["reasoning_content"].as_str().is_some_and(|it| it.contains("→ todo__list_todos"))
    );
}

#[test]
fn an_error_after_a_call_tells_clients_not_to_repeat_the_request() {
    let create = Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"a"}"#)]);
    let down = Reply::error(500, &json!({ "error": { "message": "boom" } }));
    let model = ScriptedModel::with(move |number, _| if number == 0 { create.clone() } else { down.clone() });
    let server = serve(&agent_file(&model, TODO));
    let seen = PublishedClient::OpenAiPython.run(&server, "whole");
    assert_eq!((&seen["status"], &seen["type"]), (&json!(502), &json!("server_error")), "{seen}");
    let (_, calls) = server.ask("GET", "/api/v1/calls", None);
    assert_eq!(calls["items"].as_array().map(Vec::len), Some(1), "the client repeated the request: {calls}");
}

#[test]
fn a_repeated_request_joins_the_run_that_it_began() {
    let create = Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"a"}"#)]);
    let pause = Action::Pause(Duration::from_secs(3));
    let mut slow = Reply::text(Wire::Chat, "Done.");
    slow.actions.insert(0, pause);
    let model = ScriptedModel::start(vec![create, slow]);
    let server = serve(&agent_file(&model, TODO));
    // The client gives up after two seconds, and repeats the request.
    let seen = PublishedClient::OpenAiPython.run(&server, "retry");
    assert_eq!((&seen["text"], &seen["finish"]), (&json!("Done."), &json!("stop")), "{seen}");
    assert_eq!(model.requests().len(), 2, "there is one run");
    let (_, calls) = server.ask("GET", "/api/v1/calls", None);
    assert_eq!(calls["items"].as_array().map(Vec::len), Some(1), "{calls}");
}

#[test]
fn a_repeated_request_begins_a_run_after_the_time_of_the_first_one() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Done.")]);
    let server = serve(&agent_file(&model, &format!("limits: {{run_timeout: 1}}\n{TODO}")));
    let body = json!({ "model": "wharf", "messages": [{ "role": "user", "content": "Hi" }] });
    let token = format!("Authorization: Bearer {}", server.token);
    let ask = |retries: &str| {
        let retries = format!("x-stainless-retry-count: {retries}");
        let headers = [token.as_str(), "Content-Type: application/json", &retries];
        assert_eq!(server.ask_with("POST", "/v1/chat/completions", &headers, Some(&body)).0, 200);
        model.requests().len()
    };
    assert_eq!((ask("0"), ask("1")), (1, 1), "the second request joins the run of the first");
    wait_for("another run", || (ask("1") == 2).then_some(()));
}

/// Asks for a completion as the try with this number.
fn try_again(server: &crate::serve::server::Server, retries: &str, body: &Value) -> (u16, Value) {
    let token = format!("Authorization: Bearer {}", server.token);
    let retries = format!("x-stainless-retry-count: {retries}");
    let headers = [token.as_str(), "Content-Type: application/json", &retries];
    server.ask_with("POST", "/v1/chat/completions", &headers, Some(body))
}

#[test]
fn a_repeated_request_begins_a_run_if_the_first_one_failed_without_a_call() {
    let create = Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"a"}"#)]);
    let down = || Reply::error(403, &json!({ "error": { "message": "not now" } }));
    let model = ScriptedModel::start(vec![
        down(),
        Reply::text(Wire::Chat, "Done."),
        create,
        down(),
        Reply::text(Wire::Chat, "Again."),
    ]);
    let server = serve(&agent_file(&model, TODO));
    let body = |text: &str| json!({ "model": "wharf", "messages": [{ "role": "user", "content": text }] });
    let (status, failed) = try_again(&server, "0", &body("Hi"));
    assert_eq!(status, 502, "{failed}");
    let (status, answer) = try_again(&server, "1", &body("Hi"));
    let text = |answer: &Value| answer["choices"][0]["message"]["content"].clone();
    assert_eq!((status, text(&answer)), (200, json!("Done.")), "{answer}");
    let (status, again) = try_again(&server, "2", &body("Hi"));
    assert_eq!((status, text(&again)), (200, json!("Done.")), "an answer is joined: {again}");
    for retries in ["0", "1"] {
        let (status, failed) = try_again(&server, retries, &body("Create it"));
        assert_eq!(status, 502, "a run that sent a call is joined: {failed}");
    }
    assert_eq!(model.requests().len(), 4);
}

#[test]
fn a_repeated_request_begins_a_run_if_the_stream_of_the_first_one_was_left() {
    let silent = Reply::stream("").then(Action::Hang);
    let model = ScriptedModel::start(vec![silent, Reply::text(Wire::Chat, "Done.")]);
    let server = serve(&agent_file(&model, TODO));
    let body = json!({ "model": "wharf", "messages": [{ "role": "user", "content": "Hi" }], "stream": true });
    let text = body.to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nx-stainless-retry-count: 0\r\nContent-Length: {}\r\n\r\n{text}",
        server.address,
        server.token,
        text.len()
    );
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request");
    model.wait_for_requests(1);
    drop(stream);
    model.wait_for_abandoned(1);
    // The run of the first try ends a moment after its question.
    let answered = wait_for("an answer", || {
        let response = server.raw(
            "POST",
            "/v1/chat/completions",
            &[
                &format!("Authorization: Bearer {}", server.token),
                "Content-Type: application/json",
                "x-stainless-retry-count: 1",
            ],
            Some(&body),
        );
        response.contains("Done.").then_some(response)
    });
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
}
