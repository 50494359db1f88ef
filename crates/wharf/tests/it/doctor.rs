//! Tests `wharf doctor` with real server failures, beside a healthy server.

use crate::servers::{
    background::free_port,
    workspace::{RunOutput, Workspace, program},
};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Name, cause, last lines of stderr, next step.
const FAILURES: &[(&str, &str, &str, &str)] = &[
    ("clock", "there is no `uvx` on PATH", "", "install uv"),
    ("misspelt", "npx ended (exit code 1)", "npm error code E404", "check its name and version"),
    ("nobody", "Connection refused", "", "nothing listens there"),
    ("locked", "401", "", "run `wharf login locked`"),
];

#[tokio::test]
async fn every_failure_has_a_cause_and_a_hint() {
    let mut listeners = JoinSet::new();
    let bin = TempDir::new().expect("a folder");
    let workspace = Workspace::with(&agent_file(free_port(), locked(&mut listeners).await))
        .only_on_path(without_uvx(&bin));
    let (text, json) = tokio::join!(workspace.wharf("doctor"), workspace.wharf("doctor --json"));
    check_text(&text);
    check_json(&json);
    workspace.wharf("call memory:read_graph").await.check(0, "\"entities\": []");
    workspace.assert_nothing_left();
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

fn check_text(said: &RunOutput) {
    said.check(69, "");
    let rows = rows(&said.stdout);
    assert_eq!(rows.len(), 5, "{}", said.stdout);
    for (row, (name, cause, stderr, hint)) in rows.iter().zip(FAILURES) {
        for words in [&format!("FAIL  {name}"), *cause, stderr, hint] {
            assert!(row.contains(words), "{words:?} is missing from:\n{row}");
        }
    }
    assert!(rows[4].starts_with("ok    memory    stdio      2025-11-25  9 tools"), "{}", rows[4]);
}

/// Splits the output into rows: a line and the indented lines below it.
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

fn check_json(said: &RunOutput) {
    said.check(69, "");
    let report = said.json();
    assert_eq!(report["ok"], false);
    let sources = report["sources"].as_array().expect("a list");
    assert_eq!(sources.len(), 5, "{report:#}");
    for (source, (name, cause, stderr, hint)) in sources.iter().zip(FAILURES) {
        let error = &source["error"];
        assert_eq!((&source["name"], &source["state"]), (&(*name).into(), &"error".into()));
        assert_eq!(error["type"], "MCPConnectionError");
        for (key, words) in [("message", cause), ("stderr", stderr), ("hint", hint)] {
            assert!(error[key].as_str().is_some_and(|it| it.contains(words)), "{key}: {words:?}\n{source:#}");
        }
    }
    let well = &sources[4];
    assert_eq!(
        (&well["state"], &well["era"], &well["tools"]),
        (&"connected".into(), &"legacy".into(), &9.into())
    );
}

/// Creates a folder with the programs that npx needs and nothing else, so that uvx is missing on every machine.
fn without_uvx(bin: &TempDir) -> PathBuf {
    for name in ["node", "npx", "sh"] {
        let program = fs::canonicalize(program(name)).expect("a path");
        symlink(program, bin.path().join(name)).expect("a link");
    }
    bin.path().to_owned()
}

/// Starts a server that responds 401 to every request, and returns its port. It stops with the set.
async fn locked(listeners: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    listeners.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The client may have disconnected.
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
    // Closing with unread data would reset the connection before the response arrives.
    while stream.read(&mut request).await? > 0 {}
    Ok(())
}

/// A server that lists one tool and fails all its other lists.
const HALF: &str = r#"
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *\"initialize\"*) answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"half","version":"1"}}' ;;
    *tools/list*) answer '"result":{"tools":[{"name":"wave","inputSchema":{"type":"object"}}]}' ;;
    *templates/list*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
    *resources/list*) answer '"error":{"code":-32000,"message":"the store is closed"}' ;;
    *prompts/list*) answer '"result":{}' ;;
    *\"id\":*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
    esac
done
"#;

/// Sets up the server `half` beside a server that exits at once.
fn half() -> Workspace {
    let workspace = Workspace::with(
        "tools:
  - {name: half, description: d, type: mcp, server: x, command: /bin/sh, args: ['./half.sh']}
  - {name: gone, description: d, type: mcp, server: x, command: /bin/sh, args: [-c, 'exit 3']}
",
    );
    fs::write(workspace.path("half.sh"), HALF).expect("a file");
    workspace.make_folder("state");
    fs::write(workspace.path("state/wharf.toml"), "[grants]\ncommands = [\"/bin/sh\"]\n").expect("a file");
    workspace
}

#[tokio::test]
async fn failing_prompt_or_resource_list_is_a_warning() {
    let workspace = half();
    let said = workspace.wharf("doctor half").await;
    said.check(0, "warn  half  stdio");
    said.check(0, "1 tool, 0 prompts, 0 resources");
    said.check(
        0,
        "resources/list failed: MCPProtocolError: the server answered with an error: the store is closed",
    );
    said.check(0, "prompts/list failed: MCPProtocolError: ");
    assert!(!said.stdout.contains("gone"), "{}", said.stdout);

    let report = workspace.wharf("doctor half --json").await;
    report.check(0, "");
    let report = report.json();
    let half = &report["sources"][0];
    assert_eq!(
        (&report["ok"], &half["state"], &half["error"]),
        (&true.into(), &"connected".into(), &Value::Null)
    );
    let lists: Vec<&str> =
        half["warnings"].as_array().expect("a list").iter().filter_map(|it| it["list"].as_str()).collect();
    assert_eq!(lists, ["prompts/list", "resources/list"]);
    workspace.assert_nothing_left();
}

#[tokio::test]
async fn resources_of_a_server_that_cannot_list_them_are_empty() {
    let workspace = half();
    let said = workspace.wharf("resources half").await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "half (0)\n"), "{}", said.stderr);
    said.check(0, "warning: `half` could not answer resources/list: the server answered with an error");
    assert!(!said.stderr.contains("templates"), "{}", said.stderr);
    workspace.wharf("tools half").await.check(0, "wave");
}

#[tokio::test]
async fn doctor_with_a_name_connects_to_that_server_only() {
    let workspace = half();
    let (gone, unknown) = tokio::join!(workspace.wharf("doctor gone"), workspace.wharf("doctor nobody"));
    gone.check(69, "FAIL  gone");
    assert!(!gone.stdout.contains("half"), "{}", gone.stdout);
    unknown.check(2, "there is no server 'nobody'");
    unknown.check(2, "half, gone");
}

#[tokio::test]
async fn misspelt_tool_gets_a_suggestion() {
    let workspace = half();
    for (typed, meant) in [("half:wav", "half:wave"), ("hal:wave", "half:wave"), ("half__wav", "half__wave")]
    {
        let said = workspace.wharf(&format!("call {typed}")).await;
        said.check(66, &format!("did you mean `{meant}`?"));
    }
}

/// Uses a launcher that is itself a server, whatever its arguments.
#[tokio::test]
async fn every_command_warns_once_about_deprecated_entries() {
    let workspace = Workspace::with(
        "tools:
  - {name: half, description: d, type: mcp, server: '@example/half'}
  - {name: other, description: d, type: mcp, server: '@example/other'}
",
    );
    let bin = workspace.make_folder("launchers");
    fs::write(bin.join("npx"), format!("#!/bin/sh\n{HALF}")).expect("a file");
    fs::set_permissions(bin.join("npx"), fs::Permissions::from_mode(0o755)).expect("it can be run");
    let cache = workspace.path("npm").display().to_string();
    let workspace = workspace.first_on_path([bin]).set("NPM_CONFIG_CACHE", &cache);
    let warning = "warning: an entry without 'command' is deprecated; it is started with npx (agent.yaml:2, and 1 more)";
    for typed in ["tools", "tools --json", "doctor", "resources", "explain", "call half:wave"] {
        let said = workspace.wharf(typed).await;
        assert_eq!(said.stderr.matches("is deprecated").count(), 1, "{typed}: {}", said.stderr);
        assert!(said.stderr.contains(warning), "{typed}: {}", said.stderr);
        assert!(said.stderr.contains("help: add `command: npx`"), "{typed}: {}", said.stderr);
    }
    let quiet = workspace.wharf("-q tools").await;
    assert!(!quiet.stderr.contains("deprecated"), "{}", quiet.stderr);
}
