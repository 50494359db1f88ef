//! Tests idempotency: a call with a key is executed once even if the caller retries, and a request id belongs to
//! one call.

use super::CREATE;
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::sync::{Arc, Barrier};

fn with_key(server: &Server, key: &str, body: &Value) -> (u16, Value) {
    let (token, key) = (format!("Authorization: Bearer {}", server.token), format!("Idempotency-Key: {key}"));
    server.ask_with("POST", CREATE, &[&token, &key, "Content-Type: application/json"], Some(body))
}

/// Returns the number of todos.
fn count(server: &Server) -> usize {
    let (_, listed) = server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&json!({})));
    listed["structured_content"]["todos"].as_array().map_or(0, Vec::len)
}

#[test]
fn idempotency_key_belongs_to_one_call() {
    let server = Server::start(&[]);
    let body = json!({ "arguments": { "title": "once" } });
    let (status, first) = with_key(&server, "k", &body);
    assert_eq!((status, &first["success"]), (200, &json!(true)), "{first}");
    assert_eq!(with_key(&server, "k", &body), (200, first.clone()));
    assert_eq!(with_key(&server, "k", &json!({ "arguments": { "title": "other" } })).0, 422);
    assert_eq!(with_key(&server, "another", &body).0, 200);
    assert_eq!(count(&server), 2);
    // A call that was never sent can be retried with the same key.
    assert_eq!(with_key(&server, "wrong", &json!({ "arguments": { "title": 7 } })).0, 422);
    assert_eq!(with_key(&server, "wrong", &body).0, 200);
    for key in ["", &"k".repeat(256)] {
        assert_eq!(with_key(&server, key, &body).0, 400, "{key}");
    }
    // The key is still known after a restart.
    let mut server = server;
    server.child.kill().expect("it ran");
    let server = Server::start_in(server.into_folder(), &[]);
    assert_eq!(with_key(&server, "k", &body), (200, first));
    assert_eq!(count(&server), 3);
}

/// Of many concurrent requests with one key, one is executed; the others must wait or get its response.
#[test]
fn concurrent_requests_with_one_key_make_one_call() {
    let server = Arc::new(Server::start(&[]));
    let start = Arc::new(Barrier::new(8));
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (server, start) = (server.clone(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                with_key(&server, "race", &json!({ "arguments": { "title": "raced" } })).0
            })
        })
        .collect();
    let answers: Vec<u16> = callers.into_iter().map(|it| it.join().expect("an answer")).collect();
    assert!(answers.iter().all(|it| matches!(it, 200 | 409)) && answers.contains(&200), "{answers:?}");
    assert_eq!(count(&server), 1);
}

#[test]
fn request_id_belongs_to_one_call() {
    let server = Server::start(&[]);
    let call = |id: &str| {
        let body = json!({ "arguments": { "title": "x" }, "request_id": id });
        server.ask("POST", CREATE, Some(&body))
    };
    assert_eq!(call("mine").0, 200);
    let (status, refused) = call("mine");
    assert_eq!(status, 409, "{refused}");
    assert_eq!(call("another").0, 200);
    assert_eq!((call("").0, call("a\nb").0, call(&"n".repeat(257)).0), (400, 400, 400));
    assert_eq!(count(&server), 2);
}
