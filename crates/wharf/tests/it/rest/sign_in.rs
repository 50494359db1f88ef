//! Tests signing in to the console: tickets, sessions, their limits, and the links that contain a ticket.

use super::CREATE;
use crate::{
    serve::server::{Server, wharf},
    terminal::TerminalProgram,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
};
use tempfile::TempDir;

fn ask(server: &Server, method: &str, path: &str, credential: &str, body: Option<&Value>) -> (u16, Value) {
    let credential = format!("Authorization: Bearer {credential}");
    server.ask_with(method, path, &[&credential, "Content-Type: application/json"], body)
}

/// Trades a ticket at a gateway that the test knows by its address only.
fn post_session(address: &str, ticket: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    let request = format!(
        "POST /api/v1/session HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {ticket}\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn ticket_buys_a_session_that_works_until_it_ends() {
    let server = Server::start(&[]);
    let (status, ticket) = server.ask("POST", "/api/v1/tickets", None);
    assert_eq!(status, 201, "{ticket}");
    assert_eq!(text(&ticket, "path"), format!("/#ticket={}", text(&ticket, "ticket")));
    let (status, session) = ask(&server, "POST", "/api/v1/session", text(&ticket, "ticket"), None);
    assert_eq!(status, 201, "{session}");
    assert_eq!(session["principal"], json!({ "name": "operator", "role": "admin" }));
    let secret = text(&session, "session");
    assert!(secret.starts_with("ws_") && secret.len() == 46, "{session}");

    let (status, mine) = ask(&server, "GET", "/api/v1/session", secret, None);
    assert_eq!((status, text(&mine, "via")), (200, "session"), "{mine}");
    assert_eq!(mine["features"]["database"], "sqlite");
    assert!(text(&mine, "expires_at") > text(&mine, "started_at"), "{mine}");
    let (_, token) = server.ask("GET", "/api/v1/session", None);
    assert_eq!((text(&token, "via"), &token["expires_at"]), ("token", &Value::Null));

    let arguments = json!({ "arguments": { "title": "by session" } });
    let (status, call) = ask(&server, "POST", CREATE, secret, Some(&arguments));
    assert_eq!(status, 200, "{call}");
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    assert_eq!(ask(&server, "POST", "/mcp", "ws_unknown", Some(&hello)).0, 401);
    assert_ne!(ask(&server, "POST", "/mcp", secret, Some(&hello)).0, 401);

    assert_eq!(ask(&server, "DELETE", "/api/v1/session", secret, None).0, 204);
    assert_eq!(ask(&server, "GET", "/api/v1/session", secret, None).0, 401);
    let log = server.log();
    assert!(!log.contains(secret) && !log.contains(text(&ticket, "ticket")), "{log}");
}

#[test]
fn tickets_and_sessions_are_limited_for_each_principal() {
    let server = Server::start(&[]);
    for _ in 0..16 {
        assert_eq!(server.ask("POST", "/api/v1/tickets", None).0, 201);
    }
    let (status, refused) = server.ask("POST", "/api/v1/tickets", None);
    assert_eq!(status, 429, "{refused}");
    let open = || text(&server.ask("POST", "/api/v1/session", None).1, "session").to_owned();
    let sessions: Vec<String> = (0..64).map(|_| open()).collect();
    // The first one is used, so that the second is the one that was unused for longest.
    assert_eq!(ask(&server, "GET", "/api/v1/session", &sessions[0], None).0, 200);
    let last = open();
    assert_eq!(ask(&server, "GET", "/api/v1/session", &sessions[1], None).0, 401);
    for kept in [&sessions[0], &sessions[2], &last] {
        assert_eq!(ask(&server, "GET", "/api/v1/session", kept, None).0, 200);
    }
}

#[test]
fn without_authentication_everybody_is_signed_in() {
    let server = Server::start(&["--no-auth"]);
    let (status, session) = server.ask_with("GET", "/api/v1/session", &[], None);
    assert_eq!((status, text(&session, "via")), (200, "open"), "{session}");
    assert_eq!(session["principal"], json!({ "name": "anybody", "role": "admin" }));
    assert_eq!(server.ask_with("DELETE", "/api/v1/session", &[], None).0, 409);
}

/// Limits that wharf.toml does not set have their defaults, and null means that there is none.
#[test]
fn session_shows_the_limits_of_the_gateway() {
    let usual = json!({
        "max_calls": null, "max_streams": 2_000, "max_processes": 64, "idle_stop": null, "max_body_bytes": 4 << 20,
        "record_limit": 64 << 10, "journal_keep": 30 * 86_400, "journal_max_bytes": 1 << 30,
        "conversations_keep": 90 * 86_400, "results_per_principal": 64 << 20, "results_total": 1 << 30,
    });
    let set = "[server]\nmax_calls = 7\n[calls]\nmax_processes = 3\nidle_stop = 60\nrecord_limit = 100\n\
        [journal]\nkeep = \"unlimited\"\nmax_bytes = \"1MiB\"\n[agent]\nkeep = \"12h\"\n";
    let changed = json!({
        "max_calls": 7, "max_processes": 3, "idle_stop": 60, "record_limit": 100, "journal_keep": null,
        "journal_max_bytes": 1 << 20, "conversations_keep": 43_200,
    });
    for (settings, changed) in [("", json!({})), (set, changed)] {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("wharf.toml");
        fs::write(&file, settings).expect("the settings can be written");
        let server = Server::start_in(folder, &["--settings", &file.display().to_string()]);
        let mut expected = usual.clone();
        for (key, value) in changed.as_object().into_iter().flatten() {
            expected[key] = value.clone();
        }
        assert_eq!(server.ask("GET", "/api/v1/session", None).1["limits"], expected, "{settings}");
    }
}

/// On a terminal `wharf serve` prints a link that signs in; elsewhere, where its output may be kept, it does not.
#[test]
fn serve_prints_a_link_that_signs_in_only_on_a_terminal() {
    let server = Server::start(&[]);
    let log = server.log();
    assert!(log.contains(&format!("Console  http://{}/\n", server.address)), "{log}");
    assert!(!log.contains("ticket"), "{log}");

    let folder = TempDir::new().expect("a folder");
    let home = folder.path().join("home").display().to_string();
    let variables = [("WHARF_HOME".to_owned(), home)];
    let words = [env!("CARGO_BIN_EXE_wharf"), "serve", "--listen", "127.0.0.1:0"];
    let mut program = TerminalProgram::start(folder.path(), &variables, &words);
    program.wait_for("try it: ");
    let screen = program.screen();
    let (address, ticket) = screen
        .lines()
        .find_map(|it| it.strip_prefix("Console  http://")?.split_once("/#ticket="))
        .unwrap_or_else(|| panic!("no link in {screen}"));
    for expected in ["HTTP/1.1 201", "HTTP/1.1 401"] {
        let answer = post_session(address, ticket.trim());
        assert!(answer.starts_with(expected), "{screen}\n{answer}");
    }
    // Ctrl-C.
    program.type_in("\u{3}");
    assert_eq!(program.end().code, Some(0));
}

#[test]
fn console_command_prints_a_link_that_signs_in() {
    let server = Server::start(&[]);
    let link = |args: &[&str]| {
        let output =
            wharf(&server.folder).args(["console", "--no-open"]).args(args).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let url = format!("http://{}", server.address);
    let printed = [link(&[]), link(&["--server", &url])];
    let document: Value = serde_json::from_str(&link(&["--json"])).expect("a document");
    assert_eq!(document["opened"], false);
    for link in printed.iter().map(|it| it.trim()).chain([text(&document, "url")]) {
        let ticket = link.strip_prefix(&format!("{url}/#ticket=")).unwrap_or_else(|| panic!("{link}"));
        assert_eq!(ask(&server, "POST", "/api/v1/session", ticket, None).0, 201);
        assert_eq!(ask(&server, "POST", "/api/v1/session", ticket, None).0, 401);
    }
    let none = TempDir::new().expect("a folder");
    let dead = wharf(&none).args(["console", "--server", "http://127.0.0.1:1"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&dead.stderr).contains("no gateway answers"), "{dead:?}");
}
