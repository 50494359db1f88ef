//! Provokes the layers of `wharf why` that need a server which changes or stops while a gateway runs, or a lock.

use super::layers::{gateway_of, layer, workspace};
use crate::servers::workspace::{Workspace, program};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt, path::Path};

fn stopped_by(why: &Value) -> (&str, &str) {
    let text = |key: &str| why["stopped_by"][key].as_str().unwrap_or_default();
    (text("layer"), text("code"))
}

#[test]
fn server_that_starts_with_its_first_call_is_asleep() {
    let lazy = workspace(&["plain"], "    load_tools: false\n    load_prompts: false\n", "");
    let server = gateway_of(&lazy);
    let why = || server.ask("GET", "/api/v1/tools/plain:ok/why", None).1;
    let asleep = why();
    assert_eq!(stopped_by(&asleep), ("discovery", "asleep"), "{asleep}");
    // The call starts the server, which refuses it.
    server.ask("POST", "/api/v1/tools/plain:ok/call", Some(&json!({ "arguments": {} })));
    let awake = why();
    assert_eq!((&awake["verdict"], &awake["stopped_by"]), (&json!("failing"), &Value::Null), "{awake}");
}

#[test]
fn server_that_does_not_come_back_is_down_since_its_failure() {
    let fragile = workspace(&["dies"], "", "");
    let server = gateway_of(&fragile);
    assert_eq!(server.ask("GET", "/api/v1/tools", None).0, 200);
    let why = || server.ask("GET", "/api/v1/tools/dies:ok/why", None).1;
    let connected = why();
    let detail = layer(&connected, "session")["detail"].as_str().expect("a text");
    assert!(detail.starts_with("the session is connected since 20"), "{detail}");
    fs::remove_file(server.folder.path().join("server.py")).expect("the server");
    for _ in 0..2 {
        server.ask("POST", "/api/v1/tools/dies:ok/call", Some(&json!({ "arguments": {} })));
    }
    let down = why();
    assert_eq!(stopped_by(&down), ("session", "down"), "{down}");
    assert!(down["stopped_by"]["message"].as_str().is_some_and(|it| it.contains("(since 20")), "{down}");
}

/// Writes a server that is a program of its own, so that the lock has the hash of its file.
fn write_program(path: &Path, tools: &[(&str, &str)]) {
    let python = program("python3").canonicalize().expect("a path").display().to_string();
    let tool =
        |it: &(&str, &str)| json!({ "name": it.0, "description": it.1, "inputSchema": { "type": "object" } });
    fs::write(path.with_extension("json"), json!(tools.iter().map(tool).collect::<Vec<_>>()).to_string())
        .expect("a file");
    let script = format!(
        r#"#!{python}
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {{"tools": json.load(open({:?}))}}
    if message["method"] == "initialize":
        result = {{"protocolVersion": message["params"]["protocolVersion"], "capabilities": {{"tools": {{}}}},
                  "serverInfo": {{"name": "own", "version": "1"}}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"#,
        path.with_extension("json").display().to_string()
    );
    fs::write(path, script).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[tokio::test]
async fn each_code_of_the_lock_is_explained() {
    let workspace = Workspace::with("");
    let path = workspace.path("own-server");
    let command = path.display().to_string();
    let agent = format!(
        "tools:\n  - {{name: own, description: d, type: mcp, server: own, command: {command}, args: []}}\n"
    );
    fs::write(workspace.path("agent.yaml"), agent).expect("a file");
    let settings = workspace.make_folder("state").join("wharf.toml");
    fs::write(settings, format!("[grants]\ncommands = [\"{command}\"]\n")).expect("a file");
    write_program(&path, &[("read", "Reads."), ("same", "Stays.")]);
    workspace.wharf("lock").await.check(0, "new server");
    workspace.wharf("why own:read").await.check(0, "nothing differs from a lock");
    workspace.wharf("tools").await.check(0, "read");
    let cached = workspace.wharf("why own:read --cached").await;
    cached.check(0, "ok    lock          the definition is the locked one");
    cached.check(0, "-     session       not checked: the server was not started");

    write_program(&path, &[("read", "Reads and sends."), ("same", "Stays."), ("new", "Is new.")]);
    let changed = workspace.wharf("why own:read").await;
    changed.check(1, "own:read is stopped by lock/changed: ");
    changed.check(1, "`wharf lock --accept own:read`");
    workspace.wharf("why own:new").await.check(1, "own:new is stopped by lock/new: ");
    workspace.wharf("tools").await.check(0, "read");
    let cached = workspace.wharf("why own:read --cached").await;
    cached.check(1, "own:read is stopped by lock/changed: the definition differs from wharf.lock");
    cached.check(1, "`wharf lock --accept own:read`");
    workspace.wharf("why own:new --cached").await.check(1, "own:new is stopped by lock/new: ");
    let shown = workspace.wharf("tools --cached --json").await;
    shown.check(0, "\"wire_name\"");
    assert!(!shown.stdout.contains("checks"), "{}", shown.stdout);
    workspace.wharf("why own:same").await.check(0, "own:same can be called");

    let text = fs::read_to_string(&path).expect("the program");
    fs::write(&path, text + "# changed\n").expect("the program");
    workspace.wharf("why own:same").await.check(1, "own:same is stopped by lock/package: ");
    workspace.wharf("call own:same").await.check(66, "MCPToolChangedError");
}

#[tokio::test]
async fn cached_explanation_has_the_layers_that_need_no_server() {
    let workspace = workspace(&["plain", "flaws"], "", "");
    workspace.wharf("tools").await.check(0, "ok");
    let why = async |words: &str| workspace.wharf(&format!("why {words} --cached")).await;
    why("ok").await.check(1, "stopped by name/ambiguous: several servers have a tool of this name");
    why("flaws:twin").await.check(1, "stopped by quarantine/duplicate: ");
    why("flaws:head").await.check(1, "stopped by quarantine/header: ");
    why("flaws:odd2").await.check(1, "stopped by quarantine/schema: ");
    why("plain:ok").await.check(0, "shown as `plain__ok`, also callable as `plain:ok`");
    let agent = fs::read_to_string(workspace.path("agent.yaml")).expect("the agent file");
    let rules = "approval: {deny: ['plain:*']}\n";
    fs::write(workspace.path("agent.yaml"), format!("{rules}{agent}")).expect("a file");
    why("plain:ok").await.check(0, "plain:ok can be called");
    why("plain:ok --for agent").await.check(1, "plain:ok is stopped by ask/denied: ");
    let hidden = format!("{agent}    overrides: {{ok: {{enabled: false}}}}\n");
    fs::write(workspace.path("agent.yaml"), hidden).expect("a file");
    workspace.wharf("tools").await.check(0, "ok");
    why("flaws:ok").await.check(1, "flaws:ok is stopped by override/hidden: ");
}
