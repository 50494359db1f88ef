//! `wharf doctor` on the ways in which servers are not well, each of them real, beside one that is.

use crate::servers::{
    background::free_port,
    place::{Place, Said, program},
};
use std::{fs, os::unix::fs::symlink, path::PathBuf};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Name, cause, last words, next step.
const ILLS: &[(&str, &str, &str, &str)] = &[
    ("clock", "there is no `uvx` on PATH", "", "install uv"),
    ("misspelt", "npx ended (exit code 1)", "npm error code E404", "check its name and version"),
    ("nobody", "Connection refused", "", "nothing listens there"),
    ("locked", "401", "", "run `wharf login locked`"),
];

#[tokio::test]
async fn every_ill_has_a_cause_and_a_next_step() {
    let mut doors = JoinSet::new();
    let bin = TempDir::new().expect("a folder");
    let place =
        Place::with(&agent_file(free_port(), locked(&mut doors).await)).only_on_path(without_uvx(&bin));
    let (text, json) = tokio::join!(place.wharf("doctor"), place.wharf("doctor --json"));
    check_text(&text);
    check_json(&json);
    place.wharf("call memory:read_graph").await.check(0, "\"entities\": []");
    place.is_deserted();
}

fn agent_file(nobody: u16, locked: u16) -> String {
    format!(
        "tools:
  - {{name: clock, description: d, type: mcp, server: mcp-server-time, command: uvx}}
  - {{name: misspelt, description: d, type: mcp, server: '@modelcontextprotocol/no-such-server-xyz', command: npx}}
  - {{name: nobody, description: d, type: mcp, server: x, transport: http, url: 'http://127.0.0.1:{nobody}/mcp'}}
  - {{name: locked, description: d, type: mcp, server: x, transport: http, url: 'http://127.0.0.1:{locked}/mcp'}}
  - name: memory
    description: d
    type: mcp
    server: '@modelcontextprotocol/server-memory'
    command: npx
    env: {{ MEMORY_FILE_PATH: '${{workspaceFolder}}/memory.jsonl' }}
"
    )
}

fn check_text(said: &Said) {
    said.check(69, "");
    let rows = rows(&said.stdout);
    assert_eq!(rows.len(), 5, "{}", said.stdout);
    for (row, (name, cause, last_words, next_step)) in rows.iter().zip(ILLS) {
        for words in [&format!("FAIL  {name}"), *cause, last_words, next_step] {
            assert!(row.contains(words), "{words:?} is missing from:\n{row}");
        }
    }
    assert!(rows[4].starts_with("ok    memory    stdio      2025-11-25  9 tools"), "{}", rows[4]);
}

/// A row is a line and what is indented below it.
fn rows(text: &str) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        match rows.last_mut() {
            Some(row) if line.starts_with(' ') => row.push_str(line),
            _ => rows.push(line.to_owned()),
        }
    }
    rows
}

fn check_json(said: &Said) {
    said.check(69, "");
    let report = said.json();
    assert_eq!(report["ok"], false);
    let sources = report["sources"].as_array().expect("a list");
    assert_eq!(sources.len(), 5, "{report:#}");
    for (source, (name, cause, last_words, next_step)) in sources.iter().zip(ILLS) {
        let error = &source["error"];
        assert_eq!((&source["name"], &source["state"]), (&(*name).into(), &"error".into()));
        assert_eq!(error["type"], "MCPConnectionError");
        for (key, words) in [("message", cause), ("stderr", last_words), ("hint", next_step)] {
            assert!(error[key].as_str().is_some_and(|it| it.contains(words)), "{key}: {words:?}\n{source:#}");
        }
    }
    let well = &sources[4];
    assert_eq!(
        (&well["state"], &well["era"], &well["tools"]),
        (&"connected".into(), &"legacy".into(), &9.into())
    );
}

/// A folder with what npx needs and nothing else, so that uvx is missing on every machine.
fn without_uvx(bin: &TempDir) -> PathBuf {
    for name in ["node", "npx", "sh"] {
        let program = fs::canonicalize(program(name)).expect("a path");
        symlink(program, bin.path().join(name)).expect("a link");
    }
    bin.path().to_owned()
}

/// The port of a server that wants credentials of everybody. It ends with the set.
async fn locked(doors: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    doors.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A caller that has left is nobody to refuse.
            _ = refuse(stream).await;
        }
    });
    port
}

async fn refuse(mut stream: TcpStream) -> std::io::Result<()> {
    const REFUSAL: &[u8] = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let mut request = vec![0; 64 * 1024];
    let _ = stream.read(&mut request).await?;
    stream.write_all(REFUSAL).await?;
    stream.shutdown().await?;
    // What is left unread would break the connection before the answer arrives.
    while stream.read(&mut request).await? > 0 {}
    Ok(())
}
