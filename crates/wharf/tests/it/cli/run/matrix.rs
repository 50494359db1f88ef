//! The rows of the scripted model's matrix that need no retry, in one real gateway per dialect: HTTP status, status of
//! the run, `error_type`, the count of the circuit breaker, and the exit code of `wharf run`.
//!
//! All rows, with classification and events, run inside the program's own tests without its processes.

use super::{agent_file, workspace};
use crate::serve::server::Server;
use scripted_model::{MatrixRow, Reply, ScriptedModel, Wire, matrix};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    fs,
    sync::{Arc, Mutex, PoisonError},
    thread,
};
use tempfile::TempDir;

/// Replies of the model that are left. The last one repeats.
type Script = Arc<Mutex<VecDeque<Reply>>>;

fn start_model(script: &Script) -> ScriptedModel {
    let script = script.clone();
    ScriptedModel::with(move |_, _| {
        let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = if script.len() > 1 { script.pop_front() } else { script.front().cloned() };
        reply.expect("a reply")
    })
}

fn set_replies(script: &Script, replies: Vec<Reply>) {
    *script.lock().unwrap_or_else(PoisonError::into_inner) = replies.into();
}

/// Sends a message, and returns the HTTP status and the data of `done`.
fn chat(server: &Server, script: &Script, replies: Vec<Reply>) -> (u16, Value) {
    set_replies(script, replies);
    server.ask("POST", "/api/v1/chat", Some(&json!({ "message": "Hi", "stream": false })))
}

/// Returns the failures that the breaker of the model counts.
fn failures(server: &Server) -> Value {
    let (_, breakers) = server.ask("GET", "/api/v1/breakers", None);
    let breaker = breakers["items"].as_array().into_iter().flatten().find(|it| it["service_name"] != "todo");
    breaker.map(|it| it["failure_count"].clone()).unwrap_or_default()
}

/// Runs the rows in one gateway, and returns those that end differently.
fn differences(rows: &[MatrixRow], wire: Wire) -> Vec<String> {
    let script = Script::default();
    let model = start_model(&script);
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), agent_file(wire, &model.url(), "")).expect("an agent file");
    let server = Server::start_with(folder, &[], &[("MODEL_KEY", "k")]);
    let workspace = workspace(wire, &model, "");
    let mut wrong = Vec::new();
    for row in rows.iter().filter(|it| it.wires.contains(&wire)) {
        let (status, done) = chat(&server, &script, (row.replies)(wire));
        let error_type = done["error"]["error_type"].as_str().unwrap_or_default();
        let found = format!("{status} {} {error_type:?} {}", done["status"], failures(&server));
        set_replies(&script, (row.replies)(wire));
        let exit = workspace.wharf(&["run", "Hi"]).status.code().unwrap_or(-1);
        let found = format!("{found} exit {exit}");
        let end = &row.end;
        let counted = u8::from(end.is_counted);
        let expected =
            format!("{} {:?} {:?} {counted} exit {}", end.http, end.status, end.error_type, end.exit);
        if found != expected {
            wrong.push(format!("{} in {wire:?}: {found}, expected {expected}", row.name));
        }
        if end.is_counted {
            // A success sets the count back.
            let (status, _) = chat(&server, &script, vec![Reply::text(wire, "ok")]);
            assert_eq!((status, failures(&server)), (200, 0.into()), "after {} in {wire:?}", row.name);
        }
    }
    wrong
}

#[test]
fn a_gateway_ends_every_immediate_behaviour_as_its_row_says() {
    let rows: Vec<MatrixRow> = matrix().into_iter().filter(MatrixRow::is_immediate).collect();
    assert!(rows.len() > 50, "{} rows", rows.len());
    let wrong: Vec<String> = thread::scope(|scope| {
        let dialects = Wire::ALL.map(|wire| {
            scope.spawn({
                let rows = &rows;
                move || differences(rows, wire)
            })
        });
        dialects.into_iter().flat_map(|it| it.join().expect("a thread")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
