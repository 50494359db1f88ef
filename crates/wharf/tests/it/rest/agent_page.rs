//! Tests what administrators see: the agent file, checks, explanations, imports and tokens, none of them with a secret.

use crate::serve::server::Server;
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

const SECRET: &str = "a-value-nobody-sees";

const AGENT: &str = "\
model:
  provider: ollama
  name: qwen3
  headers: {X-Team: literal-header}
tools:
  - name: notes
    description: d
    type: mcp
    server: builtin:todo
  - name: remote
    description: d
    type: mcp
    server: x
    transport: http
    url: https://remote.example/mcp
    headers:
      Authorization: Bearer ${REMOTE_KEY}
      X-Plain: literal-value
    load_tools: false
    load_prompts: false
";

fn server() -> Server {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), AGENT).expect("an agent file");
    Server::start_with(folder, &[], &[("REMOTE_KEY", SECRET)])
}

fn check_no_secret(answer: &Value) {
    let text = answer.to_string();
    for secret in [SECRET, "literal-value", "literal-header"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[test]
fn agent_file_and_explanations_have_no_secrets() {
    let server = server();
    let (status, agent) = server.ask("GET", "/api/v1/agent", None);
    assert_eq!((status, &agent["file"]), (200, &json!("agent.yaml")), "{agent}");
    let text = agent["text"].as_str().expect("a text");
    assert!(text.contains("name: qwen3") && text.contains("${REMOTE_KEY}"), "{text}");
    assert_eq!(text.lines().count(), AGENT.lines().count());
    assert!(agent["applied_at"].is_string() && agent["diagnostics"].is_array(), "{agent}");
    check_no_secret(&agent);
    let (status, explained) = server.ask("GET", "/api/v1/sources/remote/explain", None);
    assert_eq!((status, &explained["sources"][0]["name"]), (200, &json!("remote")), "{explained}");
    assert!(explained["model"].is_object(), "{explained}");
    check_no_secret(&explained);
    assert_eq!(server.ask("GET", "/api/v1/sources/nothing/explain", None).0, 404);
    assert_eq!(server.ask("GET", "/api/v1/session", None).1["features"]["chat"], true);
}

#[test]
fn check_reads_neither_files_nor_variables() {
    let server = server();
    let check = |text: &str, strict: bool| {
        let (status, report) =
            server.ask("POST", "/api/v1/check", Some(&json!({ "text": text, "strict": strict })));
        assert_eq!(status, 200, "{report}");
        report
    };
    // The variable is set in the gateway's environment, but a check does not look.
    let report = check(AGENT, false);
    assert_eq!(report["ok"], true, "{report}");
    let note = &report["diagnostics"][0];
    assert_eq!((&note["severity"], &note["code"]), (&json!("note"), &json!("V-09")), "{report}");
    let file = AGENT.replace("server: x\n", "server: x\n    envFile: /etc/passwd\n");
    let report = check(&file, false);
    assert!(!report.to_string().contains("root:"), "{report}");
    let broken = check("tools:\n  - name: 7\n    typ: mcp\n", false);
    assert_eq!(broken["ok"], false, "{broken}");
    assert!(broken["diagnostics"][0]["line"].is_u64(), "{broken}");
    let undescribed = "tools:\n  - {name: a, type: mcp, server: 'builtin:todo'}\n";
    assert_eq!(
        (&check(undescribed, false)["ok"], &check(undescribed, true)["ok"]),
        (&json!(true), &json!(false))
    );
    for wrong in [
        json!({}),
        json!({ "text": 7 }),
        json!({ "text": "", "more": 1 }),
        json!({ "text": "", "strict": 1 }),
    ] {
        assert_eq!(server.ask("POST", "/api/v1/check", Some(&wrong)).0, 400, "{wrong}");
    }
}

#[test]
fn import_finds_servers_and_shows_no_values() {
    let server = server();
    let import = |text: String| {
        let (status, report) = server.ask("POST", "/api/v1/import", Some(&json!({ "text": text })));
        assert_eq!(status, 200, "{report}");
        report
    };
    let client = json!({ "mcpServers": {
        "far": { "url": "https://far.example/mcp", "headers": { "Authorization": format!("Bearer {SECRET}") } },
        "local": { "command": "npx", "args": ["-y", "some-server"], "env": { "API_KEY": SECRET } },
        "notes": { "url": "https://far.example/mcp" },
    } });
    let report = import(client.to_string());
    check_no_secret(&report);
    assert_eq!(report["format"], "client");
    let entries = report["entries"].as_array().expect("entries");
    let entry =
        |name: &str| entries.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{report}"));
    let far = entry("far");
    assert_eq!((far["missing"].as_array().map(Vec::len), &far["refused"]), (Some(1), &Value::Null), "{far}");
    assert!(
        far["yaml"].as_str().is_some_and(|it| it.contains("https://far.example/mcp") && it.contains("${"))
    );
    assert!(far["entry"]["envFile"].is_null() && far["entry"]["url"] == "https://far.example/mcp", "{far}");
    // Processes may not be registered at this gateway, and a name is taken.
    let local = entry("local");
    assert!(local["refused"]["why"].is_string() && local["missing"] == json!(["API_KEY"]), "{local}");
    assert!(entry("notes")["refused"]["why"].as_str().is_some_and(|it| it.contains("already")), "{report}");

    let manifest = json!({ "name": "io.example/weather", "description": "d", "version": "1.0.0",
        "remotes": [{ "type": "streamable-http", "url": "https://weather.example/mcp" }] });
    let report = import(manifest.to_string());
    assert_eq!(
        (&report["format"], report["entries"].as_array().map(Vec::len)),
        (&json!("manifest"), Some(1)),
        "{report}"
    );
    let nonsense = import("what is this?".to_owned());
    assert_eq!(nonsense["entries"], json!([]));
    assert!(nonsense["problems"][0]["message"].is_string(), "{nonsense}");
    // Nothing has changed.
    assert_eq!(server.ask("GET", "/api/v1/sources", None).1["items"].as_array().map(Vec::len), Some(2));
}

#[test]
fn tokens_are_listed_without_values() {
    let server = server();
    assert_eq!(server.ask("POST", "/api/v1/session", None).0, 201);
    let (status, tokens) = server.ask("GET", "/api/v1/tokens", None);
    assert_eq!(status, 200, "{tokens}");
    let operator = &tokens["items"][0];
    assert_eq!(
        (&operator["name"], &operator["role"], &operator["sessions"]),
        (&json!("operator"), &json!("admin"), &json!(1))
    );
    assert!(operator["last_used"].is_string() && !tokens.to_string().contains(&server.token), "{tokens}");
}
