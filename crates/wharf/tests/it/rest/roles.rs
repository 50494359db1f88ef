//! Tests authorization: every operation with every role.

use super::CREATE;
use crate::serve::server::{Server, wharf};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt};
use tempfile::TempDir;

const TOKENS: &str = r#"
[tokens.looker]
role = "viewer"
value = "${LOOKER}"

[tokens.robot]
role = "caller"
value = "${ROBOT}"

[tokens.night-shift]
role = "operator"
file = "FOLDER/night-shift"
"#;

/// Starts a gateway with a token for each role.
fn server() -> Server {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("night-shift");
    fs::write(&file, "token-of-the-night-shift\n").expect("a token");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    let settings = TOKENS.replace("FOLDER", &folder.path().display().to_string());
    fs::write(folder.path().join("wharf.toml"), settings).expect("settings");
    let settings = folder.path().join("wharf.toml").display().to_string();
    Server::start_with(folder, &["--settings", &settings], &[("LOOKER", LOOKER), ("ROBOT", ROBOT)])
}

const LOOKER: &str = "token-of-the-looker";
const ROBOT: &str = "token-of-the-robot";
const NIGHT_SHIFT: &str = "token-of-the-night-shift";

#[test]
fn roles_limit_operations() {
    let server = server();
    let admin = server.token.clone();
    let body = json!({ "arguments": { "title": "x" } });
    let off = json!({ "enabled": true });
    let ui = json!({ "messages": [{ "role": "user", "parts": [{ "type": "text", "text": "Hi" }] }] });
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    let ag_ui = json!({ "threadId": "t", "runId": "r", "messages": messages });
    let completion = json!({ "model": "wharf", "messages": messages });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
    // Expected status per role, from the least to the most privileged.
    for (method, path, body, expected) in [
        ("GET", "/api/v1/tools", None, [200, 200, 200, 200]),
        ("GET", "/api/v1/calls", None, [200, 200, 200, 200]),
        ("GET", "/api/v1/sources", None, [200, 200, 200, 200]),
        ("GET", "/metrics", None, [200, 200, 200, 200]),
        ("GET", "/api/v1/tools/todo:create_todo/definitions", None, [200, 200, 200, 200]),
        ("GET", "/api/v1/sources/todo/explain", None, [403, 403, 200, 200]),
        ("GET", "/api/v1/agent", None, [403, 403, 403, 200]),
        ("GET", "/api/v1/tokens", None, [403, 403, 403, 200]),
        ("POST", "/api/v1/check", Some(&json!({ "text": "" })), [403, 403, 403, 200]),
        ("POST", "/api/v1/import", Some(&json!({ "text": "{}" })), [403, 403, 403, 200]),
        ("GET", "/api/v1/running", None, [200, 200, 200, 200]),
        ("DELETE", "/api/v1/running/x", None, [403, 403, 404, 404]),
        ("GET", "/api/v1/stats", None, [200, 200, 200, 200]),
        ("GET", "/api/v1/logs", None, [200, 200, 200, 200]),
        ("GET", "/api/v1/clients", None, [200, 200, 200, 200]),
        ("GET", "/api/v1/session", None, [200, 200, 200, 200]),
        ("POST", "/api/v1/session", None, [201, 201, 201, 201]),
        ("POST", "/api/v1/tickets", None, [201, 201, 201, 201]),
        ("DELETE", "/api/v1/session", None, [409, 409, 409, 409]),
        ("GET", "/openapi.json", None, [200, 200, 200, 200]),
        ("POST", CREATE, Some(&body), [403, 200, 200, 200]),
        ("POST", "/mcp", Some(&hello), [403, 200, 200, 200]),
        ("GET", "/ws", None, [403, 426, 426, 426]),
        ("POST", "/api/v1/prompts/nope", Some(&json!({})), [403, 404, 404, 404]),
        ("POST", "/api/v1/chat", Some(&json!({ "message": "Hi" })), [403, 503, 503, 503]),
        ("GET", "/api/v1/conversations", None, [403, 200, 200, 200]),
        ("GET", "/api/v1/conversations/x/entries", None, [403, 404, 404, 404]),
        ("DELETE", "/api/v1/conversations/x", None, [403, 404, 404, 404]),
        ("GET", "/api/v1/approvals", None, [403, 200, 200, 200]),
        (
            "POST",
            "/api/v1/approvals/x",
            Some(&json!({ "decision": "allow", "digest": "x" })),
            [403, 404, 404, 404],
        ),
        ("POST", "/api/v1/chat/ui", Some(&ui), [403, 503, 503, 503]),
        ("POST", "/api/v1/chat/ag-ui", Some(&ag_ui), [403, 503, 503, 503]),
        ("POST", "/v1/chat/completions", Some(&completion), [403, 503, 503, 503]),
        ("GET", "/v1/models", None, [403, 200, 200, 200]),
        ("POST", "/api/v1/breakers/todo/reset", None, [403, 403, 200, 200]),
        ("POST", "/api/v1/connections/todo/restart", None, [403, 403, 200, 200]),
        ("PATCH", "/api/v1/tools/todo:create_todo", Some(&off), [403, 403, 200, 200]),
        ("POST", "/api/v1/sources/todo/refresh", None, [403, 403, 200, 200]),
        (
            "POST",
            "/api/v1/sources",
            Some(&json!({ "name": "x", "mcp_server_url": "x" })),
            [403, 403, 403, 400],
        ),
        ("PATCH", "/api/v1/sources/todo", Some(&off), [403, 403, 403, 409]),
        ("DELETE", "/api/v1/sources/todo", None, [403, 403, 403, 409]),
        ("PUT", "/api/v1/sources", Some(&json!({})), [405, 405, 405, 405]),
        ("DELETE", "/api/v1/calls/x", None, [405, 405, 405, 405]),
    ] {
        for (token, expected) in [LOOKER, ROBOT, NIGHT_SHIFT, &admin].into_iter().zip(expected) {
            let token = format!("Authorization: Bearer {token}");
            let headers: &[&str] = &[&token, "Content-Type: application/json", "Accept: application/json"];
            let (status, answer) = server.ask_with(method, path, headers, body);
            assert_eq!(status, expected, "{method} {path} with {token}: {answer}");
            if status == 403 {
                let message = answer["error"]["message"].as_str();
                let hint = answer["hint"].as_str().or(message).unwrap_or_default();
                assert!(hint.contains("has the role"), "{answer}");
                assert!(answer["detail"].as_str().or(message).is_some(), "{answer}");
            }
        }
    }
    let log = server.log();
    assert!(![LOOKER, ROBOT, NIGHT_SHIFT, &admin].iter().any(|it| log.contains(*it)), "{log}");
}

/// An MCP session belongs to the principal that opened it; for others it does not exist.
#[test]
fn session_belongs_to_its_principal() {
    let server = server();
    let ask = |method: &str, token: &str, session: &str, body: Option<&serde_json::Value>| {
        let (token, session) =
            (format!("Authorization: Bearer {token}"), format!("Mcp-Session-Id: {session}"));
        let headers: &[&str] =
            &[&token, &session, "Content-Type: application/json", "Accept: application/json"];
        server.raw(method, "/mcp", headers, body)
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
    let opened = ask("POST", ROBOT, "", Some(&hello));
    let session =
        opened.lines().find_map(|it| it.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let status = |answer: String| answer.split(' ').nth(1).unwrap_or_default().to_owned();
    assert_eq!(status(ask("POST", NIGHT_SHIFT, &session, Some(&list))), "404");
    assert_eq!(status(ask("GET", NIGHT_SHIFT, &session, None)), "404");
    assert_eq!(status(ask("DELETE", NIGHT_SHIFT, &session, None)), "404");
    assert_eq!(status(ask("POST", ROBOT, &session, Some(&list))), "200");
    assert_eq!(status(ask("DELETE", ROBOT, &session, None)), "204");
}

/// A token file that other users can read is rejected at startup.
#[test]
fn missing_or_exposed_token_is_rejected() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("open");
    fs::write(&file, "token-that-all-can-read").expect("a token");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
    let missing = "role = \"viewer\"\nvalue = \"${NOT_SET_ANYWHERE}\"".to_owned();
    for (token, expected) in [
        (missing, "the token `one` is not in `NOT_SET_ANYWHERE`"),
        (format!("role = \"viewer\"\nfile = \"{}\"", file.display()), "can be read by others"),
    ] {
        let settings = folder.path().join("wharf.toml");
        fs::write(&settings, format!("[tokens.one]\n{token}\n")).expect("settings");
        let refused = wharf(&folder)
            .args(["serve", "--listen", "127.0.0.1:0", "--settings"])
            .arg(&settings)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// Only the configured hosts and origins are accepted.
#[test]
fn configured_hosts_and_origins_are_accepted() {
    let folder = TempDir::new().expect("a folder");
    let settings = folder.path().join("wharf.toml");
    let text = "[server]\nhosts = [\"wharf.example\"]\norigins = [\"https://app.example\"]\n";
    fs::write(&settings, text).expect("settings");
    let server = Server::start_in(folder, &["--settings", &settings.display().to_string()]);
    for (host, origin, expected) in [
        ("wharf.example", None, 200),
        ("wharf.example:7373", Some("https://app.example"), 200),
        ("wharf.example", Some("https://wharf.example"), 200),
        ("localhost", None, 200),
        ("other.example", None, 403),
        ("wharf.example", Some("http://app.example"), 403),
        ("wharf.example", Some("https://app.example.evil"), 403),
    ] {
        let host = format!("Host: {host}");
        let origin = origin.map(|it| format!("Origin: {it}"));
        let headers: Vec<&str> = [Some(host.as_str()), origin.as_deref()].into_iter().flatten().collect();
        assert_eq!(server.ask_with("GET", "/health", &headers, None).0, expected, "{headers:?}");
    }
}
