//! Tests that the secrets of registered sources reach only their servers: they appear in no response, log, record
//! or event, and in no byte of the database.

use super::upstream::Upstream;
use crate::{serve::server::Server, todo::postgres::Postgres};
use serde_json::{Value, json};
use std::{fs, path::Path};
use tempfile::TempDir;

/// Secrets: in a header, after rotation, in an agent file entry, and in a rejected request.
const CANARIES: [&str; 4] =
    ["canary-a1-9c0f5e77", "canary-b2-51de0a83", "canary-c3-e07bb1f4", "canary-d4-6a2f9d10"];

/// Returns every file below a folder that contains these bytes.
fn files_with(folder: impl AsRef<Path>, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.as_ref()).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, bytes));
        } else if fs::read(&path).is_ok_and(|it| it.windows(bytes.len()).any(|it| it == bytes)) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn check_no_canary(what: &str, text: &str) {
    for canary in CANARIES {
        assert!(!text.contains(canary), "{what} has {canary}: {text}");
    }
}

#[test]
fn secrets_do_not_leak_on_sqlite() {
    let folder = check(&[]);
    let home = folder.path().join("home");
    assert!(!files_with(home, b"Far MCP").is_empty(), "the database is looked at");
    for canary in CANARIES {
        assert_eq!(files_with(&folder, canary.as_bytes()), Vec::<String>::new());
    }
}

#[test]
fn secrets_do_not_leak_on_postgres() {
    let postgres = Postgres::start();
    let folder = check(&["--database", &postgres.address()]);
    // Searches the tables and the write-ahead log.
    assert!(!files_with(&postgres, b"Far MCP").is_empty(), "the database is looked at");
    for canary in CANARIES {
        assert_eq!(files_with(&postgres, canary.as_bytes()), Vec::<String>::new());
        assert_eq!(files_with(&folder, canary.as_bytes()), Vec::<String>::new());
    }
}

/// Uses secrets in every possible way and checks all output.
fn check(args: &[&str]) -> TempDir {
    let upstream = Upstream::start();
    let args: Vec<&str> = ["-vvv"].iter().chain(args).copied().collect();
    let server = Server::start(&args);
    let [first, rotated, entry, refused] = CANARIES;
    let address = format!("http://{}/mcp", upstream.address);
    let ask = |method: &str, path: &str, body: Value| {
        let (status, answer) = server.ask(method, path, Some(&body));
        check_no_canary(path, &answer.to_string());
        assert!(status < 500, "{path}: {answer}");
        answer
    };
    let far = json!({ "name": "Far MCP", "source_type": "mcp", "mcp_server_url": address,
        "mcp_env_vars": { "API_KEY": first } });
    ask("POST", "/api/v1/sources", far);
    let near = json!({ "name": "near", "description": "d", "type": "mcp", "server": "x", "transport": "http",
        "url": address, "headers": { "Authorization": format!("Bearer {entry}") } });
    ask("POST", "/api/v1/sources", near);
    ask(
        "POST",
        "/api/v1/sources",
        json!({ "name": "Far MCP", "mcp_server_url": address, "mcp_env_vars": { "API_KEY": refused } }),
    );
    ask(
        "POST",
        "/api/v1/sources",
        json!({ "name": "x", "mcp_server_url": 7, "mcp_env_vars": { "API_KEY": refused } }),
    );
    ask("PATCH", "/api/v1/sources/Far%20MCP", json!({ "env": { "API_KEY": rotated } }));
    ask("PATCH", "/api/v1/sources/Far%20MCP", json!({ "env": { "API_KEY": refused, "NO_HEADER": refused } }));
    for source in ["Far%20MCP", "near"] {
        // The server returns its secrets. The caller may see them, but they must not be recorded.
        let body = json!({ "arguments": { "tell": true } });
        let (status, _) = server.ask("POST", &format!("/api/v1/tools/{source}:slow/call"), Some(&body));
        assert_eq!(status, 200);
    }
    let heard = upstream.heard.headers();
    assert!(
        [first, rotated, entry].iter().all(|it| heard.contains(it)) && !heard.contains(refused),
        "{heard}"
    );
    let (_, calls) = server.ask("GET", "/api/v1/calls", None);
    assert!(calls["items"].to_string().contains("***"), "{calls}");
    let paths = [
        "calls",
        "sources",
        "tools",
        "connections",
        "breakers",
        "sources/near",
        "lock",
        "results",
        "conversations",
        "tools/near:slow/why",
        "tools/near:slow/why?for=agent",
        "tools/Far%20MCP:slow/why",
        "tools/near:slow/definitions",
    ];
    for path in paths {
        check_no_canary(path, &server.ask("GET", &format!("/api/v1/{path}"), None).1.to_string());
    }
    check_no_canary("metrics", &server.text("/metrics"));
    check_no_canary("the log", &server.log());
    let mut server = server;
    server.child.kill().expect("it ran");
    server.into_folder()
}
