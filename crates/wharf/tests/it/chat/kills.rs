//! Kills the gateway at random moments of runs that write: nothing is executed twice, and every conversation continues.
//!
//! `WHARF_AGENT_KILLS` is the number of kills of runs that had begun. How long a run takes is measured, because a busy
//! machine would otherwise kill only gateways that have not begun it.

use super::{CANARY, TODO, agent_file, ask, on_both_engines};
use crate::serve::server::Server;
use scripted_model::{Reply, Request, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Default number of kills on each engine.
const DEFAULT_KILLS: usize = 6;
/// Outcome of a kill before the conversation existed.
const NOT_BEGUN: &str = "not begun";
/// Maximum number of kills for each one that counts.
const MAX_ATTEMPTS: usize = 10;

#[expect(clippy::disallowed_methods, reason = "the environment sets the number of kills")]
fn kills() -> usize {
    std::env::var("WHARF_AGENT_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(DEFAULT_KILLS)
}

/// A model that creates the two todos that a message names, and repeats nothing.
fn reply(request: &Request) -> Reply {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let text = last["content"].as_str().unwrap_or_default().to_owned();
    match (last["role"].as_str(), text.strip_prefix("create ")) {
        (Some("user"), Some(title)) => {
            let call = |number: usize| json!({ "title": format!("{title}-{number}") }).to_string();
            let (one, two) = (call(1), call(2));
            Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", &one), ("c2", "todo__create_todo", &two)])
        }
        _ => Reply::text(Wire::Chat, "Done."),
    }
}

fn start(folder: TempDir, args: &[&str]) -> Server {
    Server::start_with(folder, args, &[("MODEL_KEY", CANARY)])
}

/// Sends a message and kills the gateway some time later.
fn send_and_kill(mut server: Server, message: &str, life: Duration) -> TempDir {
    let body = json!({ "message": message }).to_string();
    let request = format!(
        "POST /api/v1/chat HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request");
    let until = Instant::now() + life;
    while Instant::now() < until {
        std::thread::yield_now();
    }
    server.child.kill().expect("it runs");
    server.into_folder()
}

/// Returns how long a whole run takes now.
fn run_time(server: &Server, number: usize) -> Duration {
    let begun = Instant::now();
    assert_eq!(ask(server, &format!("create whole{number:04}")).0, 200);
    begun.elapsed()
}

/// Continues the latest conversation, if it was begun, and checks it. Returns what had happened when it was killed.
fn check(server: &Server, title: &str) -> &'static str {
    let (_, listed) = server.ask("GET", "/api/v1/conversations?limit=1", None);
    let conversation = &listed["items"][0];
    let Some(id) = conversation["id"].as_str().filter(|_| conversation["title"] == format!("create {title}"))
    else {
        return NOT_BEGUN;
    };
    let state = conversation["state"].as_str().expect("a state");
    assert!(["idle", "interrupted"].contains(&state), "{conversation}");
    let go_on = json!({ "message": "go on", "conversation_id": id, "stream": false });
    let (status, done) = server.ask("POST", "/api/v1/chat", Some(&go_on));
    assert_eq!((status, &done["status"]), (200, &json!("finished")), "{done}");
    let (_, entries) = server.ask("GET", &format!("/api/v1/conversations/{id}/entries"), None);
    let entries = entries["items"].as_array().expect("entries");
    let of = |kind: &str| entries.iter().filter(|it| it["kind"] == kind).collect::<Vec<&Value>>();
    let (_, todos) = server.ask(
        "POST",
        "/api/v1/tools/todo:search_todos/call",
        Some(&json!({ "arguments": { "query": title } })),
    );
    let made = todos["structured_content"].to_string();
    let wanted = if of("answer").len() > 1 { 2 } else { 0 };
    assert_eq!(of("result").len(), wanted, "every wanted call has exactly one result: {entries:?}");
    for result in of("result") {
        let number = if result["call_id"] == "c1" { 1 } else { 2 };
        let count = made.matches(&format!("\"{title}-{number}\"")).count();
        match result["body"]["status"].as_str() {
            Some("completed") => assert_eq!(count, 1, "a result was lost: {made}"),
            Some("unknown") => assert!(count <= 1, "a call was executed twice: {made}"),
            Some("failed") => assert_eq!(count, 0, "a call was executed without a word: {made}"),
            other => panic!("{other:?}"),
        }
    }
    match (state, of("started").len()) {
        ("interrupted", 0) => "interrupted before the calls",
        ("interrupted", _) => "interrupted after the calls had begun",
        _ => "finished",
    }
}

#[test]
fn runs_continue_after_kills_and_execute_nothing_twice() {
    on_both_engines(|args| {
        let model = ScriptedModel::with(|_, request| reply(request));
        let mut folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("agent.yaml"), agent_file(&model, TODO)).expect("an agent file");
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut outcomes = std::collections::BTreeMap::<&str, usize>::new();
        let mut server = start(folder, args);
        let (mut attempts, mut begun) = (0, 0);
        while begun < kills() {
            assert!(attempts < kills() * MAX_ATTEMPTS, "too few runs begin: {outcomes:?}");
            let title = format!("kill{attempts:04}");
            let longest = run_time(&server, attempts);
            let life = Duration::from_micros(random.u64(..longest.as_micros() as u64));
            folder = send_and_kill(server, &format!("create {title}"), life);
            server = start(folder, args);
            let outcome = check(&server, &title);
            *outcomes.entry(outcome).or_default() += 1;
            attempts += 1;
            begun += usize::from(outcome != NOT_BEGUN);
        }
        assert_eq!(ask(&server, "create last").0, 200);
        let engine = if args.is_empty() { "SQLite" } else { "PostgreSQL" };
        println!("{engine}: {attempts} kills, {begun} of runs that had begun: {outcomes:?} (seed {seed})");
    });
}
