//! Tests that numbers and text arrive unchanged through every interface: no digit is lost, and invalid text is
//! replaced visibly.

use crate::serve::server::{AfterSending, Server};
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;

const ECHO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/exact/echo.sh");

/// A number with more digits than a double has, and one that exceeds its range.
const NUMBERS: &str = r#"{"n":12345678901234567890123,"f":1e99999,"z":0.10}"#;

/// Creates a folder with an agent file whose only server returns its arguments.
fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let entry = format!(
        "{{name: s, description: Echo, type: mcp, server: echo, command: /bin/sh, args: ['{ECHO}']}}"
    );
    fs::write(folder.path().join("agent.yaml"), format!("tools:\n  - {entry}\n")).expect("an agent file");
    fs::write(folder.path().join("wharf.toml"), "[grants]\ncommands = [\"/bin/sh\"]\n").expect("settings");
    folder
}

/// Runs `wharf call --json` and returns its output without white space.
fn call(folder: &Path, words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(["call", "--json", "--settings", "wharf.toml"])
        .args(words)
        .current_dir(folder)
        .env("WHARF_HOME", folder.join("home"))
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
    let printed = String::from_utf8(output.stdout).expect("text");
    printed.chars().filter(|it| !it.is_whitespace()).collect()
}

/// Starts a gateway with the same server.
fn gateway() -> Server {
    let folder = folder();
    let settings = folder.path().join("wharf.toml").display().to_string();
    Server::start_in(folder, &["--settings", &settings])
}

/// Posts a body verbatim and returns the complete response.
fn post(server: &Server, path: &str, headers: &str, body: &str) -> String {
    let (address, token, length) = (&server.address, &server.token, body.len());
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    server.send(request.as_bytes(), AfterSending::Stay)
}

#[test]
fn a_call_prints_the_digits_of_its_result() {
    let printed = call(folder().path(), &["s:numbers"]);
    assert!(printed.contains(&format!("\"structured_content\":{NUMBERS}")), "{printed}");
}

#[test]
fn a_call_keeps_the_digits_of_its_arguments() {
    let folder = folder();
    for words in [
        &["s:echo", "--args", NUMBERS][..],
        &["s:echo", "n:=12345678901234567890123", "f:=1e99999", "z:=0.10"],
    ] {
        let printed = call(folder.path(), words);
        assert!(printed.contains(&format!("\"structured_content\":{NUMBERS}")), "{words:?}: {printed}");
    }
}

#[test]
fn rest_keeps_the_digits_in_the_answer_and_in_the_journal() {
    let server = gateway();
    let answer = post(&server, "/api/v1/tools/s:echo/call", "", &format!("{{\"arguments\":{NUMBERS}}}"));
    assert!(answer.contains(&format!("\"structured_content\":{NUMBERS}")), "{answer}");
    let calls = server.text("/api/v1/calls");
    assert!(calls.contains(&format!("\"parameters\":{NUMBERS}")), "{calls}");
    assert!(calls.contains(&format!("\"result\":{NUMBERS}")), "{calls}");
    // A body with duplicate keys or invalid text is rejected.
    for body in [r#"{"arguments":{"a":1,"a":2}}"#, r#"{"arguments":{"a":"\ud800"}}"#] {
        let answer = post(&server, "/api/v1/tools/s:echo/call", "", body);
        assert!(answer.starts_with("HTTP/1.1 400"), "{body}: {answer}");
    }
}

#[test]
fn mcp_keeps_the_digits() {
    let server = gateway();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"s__echo","arguments":{NUMBERS},{meta}}}}}"#
    );
    let headers = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                   Mcp-Method: tools/call\r\nMcp-Name: s__echo\r\n";
    let answer = post(&server, "/mcp", headers, &body);
    assert!(answer.contains(&format!("\"structuredContent\":{NUMBERS}")), "{answer}");
}

#[test]
fn lone_surrogate_is_replaced_in_every_output() {
    let printed = call(folder().path(), &["s:half"]);
    assert!(printed.contains("{\"type\":\"text\",\"text\":\"half:\u{fffd}.\"}"), "{printed}");
    let server = gateway();
    let answer = post(&server, "/api/v1/tools/s:half/call", "", "{}");
    assert!(answer.contains("{\"type\":\"text\",\"text\":\"half:\u{fffd}.\"}"), "{answer}");
}
