//! Tests `wharf sources` with a running gateway.

use super::upstream::Upstream;
use crate::serve::server::{Server, wharf};
use serde_json::{Value, json};
use std::{fs, process::Output, sync::atomic::Ordering};
use tempfile::TempDir;

fn run_sources(server: &Server, words: &[&str]) -> (Option<i32>, String, String) {
    let address = format!("http://{}", server.address);
    said(
        wharf(&server.folder)
            .arg("sources")
            .args(words)
            .args(["--server", &address])
            .output()
            .expect("it runs"),
    )
}

fn said(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn sources_command_manages_sources() {
    let upstream = Upstream::start();
    let server = Server::start(&[]);
    let source = json!({ "name": "far", "mcp_server_url": format!("http://{}", upstream.address) });
    let file = server.folder.path().join("far.json");
    fs::write(&file, source.to_string()).expect("a file");
    let (code, out, err) = run_sources(&server, &["add", &file.display().to_string()]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.starts_with("far is registered as ") && out.ends_with(", with 2 tools\n"), "{out}");
    let (code, out, _) = run_sources(&server, &["list"]);
    let lines: Vec<Vec<&str>> = out.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(code, Some(0));
    assert_eq!(
        lines,
        [
            vec!["NAME", "ORIGIN", "STATE", "HEALTH", "TRANSPORT", "TOOLS"],
            vec!["todo", "builtin", "ready", "healthy", "builtin", "5"],
            vec!["far", "rest", "ready", "healthy", "http", "2"],
        ]
    );
    let (code, out, _) = run_sources(&server, &["list", "--json"]);
    let all: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &all["sources"][1]["name"]), (Some(0), &json!("far")), "{out}");
    upstream.heard.silent.store(true, Ordering::Relaxed);
    let (code, out, _) = run_sources(&server, &["refresh", "far"]);
    assert_eq!((code, out.as_str()), (Some(0), "far: 1 tools, 0 new, 0 changed, 1 gone\n"));
    for (words, expected, about) in [
        (&["add", &source.to_string()][..], 2, "a source of this name already exists"),
        (&["add", "{\"name\": 7}"], 2, "help: "),
        (&["add", "no-such-file.json"], 2, "does not exist"),
        (
            &["add", r#"{"name":"y","description":"d","type":"mcp","server":"y","command":"npx"}"#],
            2,
            "registering a server that runs as a process is not allowed",
        ),
        (&["remove", "todo"], 2, "this source is defined in the agent file"),
        (&["remove", "nobody"], 66, "there is no such source"),
        (&["refresh", "nobody"], 66, "there is no source 'nobody'"),
    ] {
        let (code, _, err) = run_sources(&server, words);
        assert_eq!(code, Some(expected), "{words:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(about), "{words:?}: {err}");
    }
    let (code, out, _) = run_sources(&server, &["remove", "far"]);
    assert_eq!((code, out.as_str()), (Some(0), "far is removed\n"));
    let (code, out, _) = run_sources(&server, &["remove", "far", "--json"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &report["error"]["message"]), (Some(66), &json!("there is no such source")));
}

#[test]
fn unreachable_or_invalid_server_is_reported() {
    let folder = TempDir::new().expect("a folder");
    let ask = |server: &str, token: &str| {
        let mut command = wharf(&folder);
        command.env("WHARF_TOKEN", token).args(["sources", "list", "--server", server]);
        said(command.output().expect("it runs"))
    };
    for (server, expected, about) in [
        ("http://127.0.0.1:1", 69, "no gateway answers at 127.0.0.1:1"),
        ("ftp://127.0.0.1", 2, "`--server` has to be an address"),
        ("nonsense", 2, "`--server` has to be an address"),
        ("https:///api", 2, "`--server` has to be an address"),
        ("http://tools.example", 2, "the token would cross the network unencrypted"),
    ] {
        let (code, out, err) = ask(server, "a-token-that-is-secret");
        assert_eq!((code, out.as_str()), (Some(expected), ""), "{server}: {err}");
        assert!(err.contains(about) && err.contains("help: ") || expected == 2, "{server}: {err}");
        assert!(!err.contains("a-token-that-is-secret"));
    }
}
