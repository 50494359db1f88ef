//! Tests the agent behind `wharf serve`, with a scripted model at the other end.

mod approvals;
mod attachments;
mod canary;
mod catalog_changes;
mod conversations;
mod kills;
mod large_images;
mod scenarios;
mod server_questions;
mod states;
mod store_failures;

use crate::{serve::server::Server, todo::postgres::Postgres};
use scripted_model::ScriptedModel;
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The Todo server as the only source.
pub(crate) const TODO: &str =
    "tools:\n  - name: todo\n    description: A list of todos\n    type: mcp\n    server: builtin:todo\n";

/// An agent file for a scripted model that speaks chat completions.
pub(crate) fn agent_file(model: &ScriptedModel, more: &str) -> String {
    let url = model.url();
    format!("model:\n  provider: openai\n  name: m\n  endpoint: {url}\n  api_key: ${{MODEL_KEY}}\n{more}")
}

/// Starts a gateway with this agent file.
pub(crate) fn serve(agent_file: &str) -> Server {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), agent_file).expect("an agent file");
    Server::start_with(folder, &[], &[("MODEL_KEY", CANARY)])
}

/// Starts a gateway with this agent file and these settings.
pub(crate) fn serve_with_settings(agent_file: &str, settings: &str) -> Server {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), agent_file).expect("an agent file");
    fs::write(folder.path().join("wharf.toml"), settings).expect("settings");
    let settings = folder.path().join("wharf.toml").display().to_string();
    Server::start_with(folder, &["--settings", &settings], &[("MODEL_KEY", CANARY)])
}

/// Sends a message and leaves the response unread. Dropping the stream closes the connection.
pub(crate) fn begin(server: &Server, token: &str, body: &Value) -> TcpStream {
    let text = body.to_string();
    let request = format!(
        "POST /api/v1/chat HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{text}",
        server.address,
        text.len()
    );
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request");
    stream
}

/// Returns the titles of the todos.
pub(crate) fn todos(server: &Server) -> Vec<String> {
    let (_, listed) = server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&json!({})));
    let todos = listed["structured_content"]["todos"].as_array().expect("todos").clone();
    todos.iter().filter_map(|it| it["title"].as_str().map(str::to_owned)).collect()
}

/// Runs a check on SQLite and on PostgreSQL. It gets the arguments of `wharf serve`.
fn on_both_engines(check: impl Fn(&[&str])) {
    check(&[]);
    let postgres = Postgres::start();
    check(&["--database", &postgres.address()]);
}

/// Starts a gateway with this agent file and these arguments, and the tokens of two callers.
fn serve_callers(agent_file: &str, args: &[&str]) -> Server {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), agent_file).expect("an agent file");
    let settings = "[tokens.ann]\nrole = \"caller\"\nvalue = \"${ANN}\"\n\n[tokens.bob]\nrole = \"caller\"\nvalue = \"${BOB}\"\n";
    fs::write(folder.path().join("wharf.toml"), settings).expect("settings");
    let settings = folder.path().join("wharf.toml").display().to_string();
    let args = [&["--settings", settings.as_str()], args].concat();
    let variables = [("MODEL_KEY", CANARY), ("ANN", ANN), ("BOB", BOB)];
    Server::start_with(folder, &args, &variables)
}

/// Tokens of two callers.
const ANN: &str = "token-of-ann-the-caller";
const BOB: &str = "token-of-bob-the-caller";

/// Sends a request as this principal.
fn ask_as(server: &Server, token: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let token = format!("Authorization: Bearer {token}");
    server.ask_with(method, path, &[&token, "Content-Type: application/json"], body)
}

/// Waits until `check` returns a value.
pub(crate) fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(Instant::now() < until, "{what} takes too long");
        std::thread::yield_now();
    }
}

/// The key of the model, which must not appear anywhere.
pub(crate) const CANARY: &str = "sk-canary-7f3e9a";

/// One server-sent event: id, name and data.
type SentEvent = (u64, String, Value);

/// Reads the events of a response.
fn events(response: &str) -> Vec<SentEvent> {
    let body = unchunked(response);
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(": "));
        let data = serde_json::from_str(field("data")?).expect("JSON");
        Some((field("id")?.parse().expect("a number"), field("event")?.to_owned(), data))
    };
    body.split("\n\n").filter_map(event).collect()
}

/// Removes the chunked encoding of a response.
pub(crate) fn unchunked(response: &str) -> String {
    let mut rest = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size @ 1..) = usize::from_str_radix(size, 16) else { break };
        let Some(chunk) = after.get(..size) else { break };
        body.push_str(chunk);
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}

/// Sends a message and returns the response as text.
fn send(server: &Server, body: &Value) -> String {
    let token = format!("Authorization: Bearer {}", server.token);
    server.raw("POST", "/api/v1/chat", &[&token, "Content-Type: application/json"], Some(body))
}

/// Sends a message without a stream. Returns status and body.
fn ask(server: &Server, message: &str) -> (u16, Value) {
    server.ask("POST", "/api/v1/chat", Some(&json!({ "message": message, "stream": false })))
}

/// Returns the names of events.
fn names(events: &[SentEvent]) -> Vec<&str> {
    events.iter().map(|(_, name, _)| name.as_str()).collect()
}
