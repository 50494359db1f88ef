//! Tests the output of `wharf serve` at startup.

use super::{
    server::{Server, wharf},
    unavailable_servers::{STEP_TIMEOUT, free_address},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Creates a folder whose agent file has a good server, one that is down, one that starts on its first call, and
/// these entries.
fn folder_with(more: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let dead = free_address();
    let entries = format!(
        "tools:\n  - {{name: notes, description: d, type: mcp, server: 'builtin:todo'}}\n  \
         - {{name: dead, description: d, type: mcp, server: x, transport: http, url: 'http://{dead}/mcp'}}\n  \
         - {{name: lazy, description: d, type: mcp, server: 'builtin:todo', load_tools: false, load_prompts: false}}\n{more}"
    );
    fs::write(folder.path().join("agent.yaml"), entries).expect("the file can be written");
    folder
}

fn line_with<'a>(log: &'a str, start: &str) -> &'a str {
    log.lines().find(|it| it.starts_with(start)).unwrap_or_else(|| panic!("no {start:?} in {log}"))
}

#[test]
fn each_server_is_reported_when_it_settles() {
    let server = Server::start_in(folder_with(""), &[]);
    let log = server.log_with("FAIL  dead");
    let log = if log.contains("ok    notes") { log } else { server.log_with("ok    notes") };
    assert!(line_with(&log, "ok    notes  5 tools, ready after ").ends_with(" s"), "{log}");
    let failed =
        line_with(&log, "FAIL  dead   MCPConnectionError: could not begin a session with `dead` (http://");
    let rest = log.split_once(failed).expect("it is there").1;
    assert!(rest.trim_start().starts_with("help: "), "{log}");
    line_with(&log, "-     lazy   starts with its first call");
    line_with(&log, "serving 3 servers, configured by agent.yaml");
    line_with(&log, "connect Claude, VS Code or Cursor: wharf connect claude");
    let token = server.token.trim();
    assert!(!log.contains(token), "the token is in {log}");
}

/// A slow server delays neither the listener nor the messages about other servers.
#[test]
fn slow_server_does_not_delay_startup() {
    let slow = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", slow.local_addr().expect("an address"));
    let more =
        format!("  - {{name: slow, description: d, type: mcp, server: x, transport: http, url: '{url}'}}\n");
    let server = Server::start_in(folder_with(&more), &[]);
    assert_eq!(server.ask_with("GET", "/health", &[], None).0, 200);
    let log = server.log_with("ok    notes");
    assert!(!log.contains("    slow"), "{log}");
}

#[test]
fn without_an_agent_file_the_todo_server_is_served_and_the_curl_line_works() {
    let server = Server::start(&[]);
    let log = server.log_with("ok    todo");
    line_with(&log, "serving the built-in Todo server: there is no agent.yaml here");
    let pasted = line_with(&log, "try it: curl ").strip_prefix("try it: ").expect("a command");
    assert!(pasted.contains("$(cat ") && !pasted.contains(server.token.trim()), "{pasted}");
    // Runs the command in a shell in another folder, with `curl` replaced, so that the test does not need it.
    let script = format!("curl() {{ for word in \"$@\"; do echo \"$word\"; done; }}\n{pasted}");
    let words = Command::new("sh").args(["-c", &script]).current_dir("/").output().expect("a shell");
    let words = String::from_utf8(words.stdout).expect("text");
    let [flag, header, url] = words.lines().collect::<Vec<_>>()[..] else { panic!("{words:?}") };
    let path = url.strip_prefix(&format!("http://{}", server.address)).expect("our address");
    let (status, tools) = server.ask_with("GET", path, &[header], None);
    assert_eq!((flag, status, tools["items"].as_array().map(Vec::len)), ("-H", 200, Some(5)), "{tools}");
    for path in ["/docs", "/health"] {
        assert_eq!(server.ask_with("GET", path, &[], None).0, 200, "{path}");
    }
}

/// Starts the gateway at this address and waits until it responds.
fn started(folder: &TempDir, address: &str, args: &[&str]) -> Child {
    let mut command = wharf(folder);
    command.args(["serve", "--listen", address]).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let begun = Instant::now();
    while !is_healthy(address) {
        assert!(
            begun.elapsed() < STEP_TIMEOUT && child.try_wait().expect("its state").is_none(),
            "it does not serve"
        );
        thread::sleep(Duration::from_millis(20));
    }
    child
}

fn is_healthy(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    read.is_ok() && answer.starts_with("HTTP/1.1 200")
}

fn terminated(mut child: Child) -> (String, String) {
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{err}");
    (out, err)
}

#[test]
fn quiet_prints_nothing() {
    let (folder, address) = (folder_with(""), free_address());
    let (out, err) = terminated(started(&folder, &address, &["-q"]));
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
}

#[test]
fn json_prints_one_document() {
    let (folder, address) = (folder_with(""), free_address());
    let mut child = started(&folder, &address, &["--json"]);
    let document = serde_json::Deserializer::from_reader(child.stdout.as_mut().expect("a pipe"))
        .into_iter::<Value>()
        .next();
    let document = document.expect("a document").expect("JSON");
    assert_eq!(document["addresses"]["mcp"], format!("http://{address}/mcp"));
    assert_eq!(document["addresses"]["docs"], format!("http://{address}/docs"));
    assert_eq!(document["agent_file"], "agent.yaml");
    let token = folder.path().join("home/token");
    assert_eq!(document["token_file"], json!(token));
    assert!(document["curl"].as_str().expect("a command").contains("$(cat "), "{document:#}");
    assert_eq!(document["connect"], "wharf connect claude");
    let sources = document["sources"].as_array().expect("a list");
    let states: Vec<_> = sources.iter().map(|it| (&it["name"], &it["state"], &it["tools"])).collect();
    let [notes, dead, lazy] = ["notes", "dead", "lazy"].map(Value::from);
    let [connected, error, startup] = ["connected", "error", "startup"].map(Value::from);
    let (five, none) = (json!(5), json!(0));
    assert_eq!(states, [(&notes, &connected, &five), (&dead, &error, &none), (&lazy, &startup, &none)]);
    assert!(sources[1]["error"]["hint"].is_string(), "{document:#}");
    let secret = fs::read_to_string(token).expect("a token");
    assert!(!document.to_string().contains(secret.trim()));
    let (rest, _) = terminated(child);
    assert_eq!(rest.trim(), "");
}

/// A gateway that is stopped while a server is still starting prints its JSON output all the same.
#[test]
fn json_is_printed_before_the_end() {
    let slow = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", slow.local_addr().expect("an address"));
    let more =
        format!("  - {{name: slow, description: d, type: mcp, server: x, transport: http, url: '{url}'}}\n");
    let (folder, address) = (folder_with(&more), free_address());
    let (out, _) = terminated(started(&folder, &address, &["--json"]));
    let document: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert_eq!(document["sources"][3]["state"], "connecting", "{document:#}");
}

#[test]
fn sources_list_shows_the_error_of_a_failed_server() {
    let server = Server::start_in(folder_with(""), &[]);
    server.log_with("FAIL  dead");
    let list = |words: &[&str]| {
        let mut command = wharf(&server.folder);
        command.args(["sources", "list", "--server", &format!("http://{}", server.address)]).args(words);
        String::from_utf8(command.output().expect("it runs").stdout).expect("text")
    };
    let text = list(&[]);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|it| it.starts_with("dead ")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(lines[at].split_whitespace().nth(2), Some("error"), "{text}");
    assert!(
        lines[at + 1].starts_with("      MCPConnectionError: could not begin a session with `dead` (http://"),
        "{text}"
    );
    assert!(lines[at + 2].starts_with("      help: "), "{text}");
    let json: Value = serde_json::from_str(&list(&["--json"])).expect("JSON");
    let dead = json["sources"].as_array().expect("a list").iter().find(|it| it["name"] == "dead");
    let error = &dead.expect("a source")["error"];
    assert!(error["message"].is_string() && error["hint"].is_string(), "{json:#}");
}
