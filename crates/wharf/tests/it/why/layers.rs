//! Provokes the layers of `wharf why`, each with a server or a setting that stops the tool or changes how it is called.

use crate::{
    serve::server::{Server, wharf},
    servers::workspace::{Workspace, program},
};
use serde_json::{Value, json};
use std::{fs, thread, time::Duration};
use tempfile::TempDir;

/// A legacy server whose argument is what it does: `plain`, or one of the flaws below.
const SERVER: &str = r#"
import json, sys, time
kind = sys.argv[1]
schema = {"type": "object", "properties": {"a": {"type": "string"}}}
tools = [{"name": "ok", "inputSchema": schema}]
if kind == "flaws":
    tools += [{"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}},
              {"name": "odd2", "inputSchema": []},
              {"name": "twin", "inputSchema": schema}, {"name": "twin", "description": "other", "inputSchema": schema},
              {"name": "head", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "no good"}}}}]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        if kind == "slow":
            time.sleep(4)
        capabilities = {"prompts": {}} if kind == "toolless" else {"tools": {}}
        answer["result"] = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": capabilities,
                            "serverInfo": {"name": "layers", "version": "1"}}
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": tools}
    elif message["method"] == "prompts/list":
        answer["result"] = {"prompts": []}
    elif kind == "dies" and message["method"] == "tools/call":
        sys.exit(1)
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

/// Creates a workspace with one entry `own` for each kind of server, called like it. `more` is added to each entry.
pub(super) fn workspace(kinds: &[&str], more: &str, settings: &str) -> Workspace {
    let python = program("python3").canonicalize().expect("a path").display().to_string();
    let workspace = Workspace::with("");
    let script = workspace.path("server.py");
    fs::write(&script, SERVER).expect("a file");
    let entry = |kind: &&str| {
        format!(
            "  - name: {kind}\n    description: d\n    type: mcp\n    server: own\n    command: {python}\n    \
             args: [{}, {kind}]\n{more}",
            script.display()
        )
    };
    let entries: String = kinds.iter().map(entry).collect();
    fs::write(workspace.path("agent.yaml"), format!("tools:\n{entries}")).expect("a file");
    let settings = format!("[grants]\ncommands = [\"{python}\"]\n{settings}");
    fs::write(workspace.make_folder("state").join("wharf.toml"), settings).expect("a file");
    workspace
}

/// Starts a gateway with the files of a workspace.
pub(super) fn gateway_of(workspace: &Workspace) -> Server {
    let folder = TempDir::new().expect("a folder");
    for (from, to) in
        [("agent.yaml", "agent.yaml"), ("state/wharf.toml", "wharf.toml"), ("server.py", "server.py")]
    {
        fs::copy(workspace.path(from), folder.path().join(to)).expect("a file");
    }
    let agent = fs::read_to_string(folder.path().join("agent.yaml")).expect("a file");
    let (from, to) = (workspace.path("server.py"), folder.path().join("server.py"));
    let agent = agent.replace(&from.display().to_string(), &to.display().to_string());
    fs::write(folder.path().join("agent.yaml"), agent).expect("a file");
    let settings = folder.path().join("wharf.toml").display().to_string();
    Server::start_with(folder, &["--settings", &settings], &[])
}

#[tokio::test]
async fn unknown_names_and_flawed_definitions_are_explained() {
    let flawed = workspace(&["flaws", "toolless"], "", "");
    for (name, exit, answer) in [
        ("nobody:ok", 66, "stopped by config/source_unknown"),
        ("flaws:nothing", 66, "stopped by listing/not_listed"),
        ("flaws:odd2", 1, "stopped by quarantine/schema"),
        ("flaws:twin", 1, "stopped by quarantine/duplicate"),
        ("flaws:head", 1, "stopped by quarantine/header"),
        ("toolless:ok", 1, "stopped by capability/no_tools"),
        ("flaws:ok", 0, "flaws:ok can be called"),
    ] {
        flawed.wharf(&format!("why {name}")).await.check(exit, answer);
    }
    fs::write(flawed.path("agent.yaml"), "tools: [{name: a, transport: smoke}]\n").expect("a file");
    flawed.wharf("why flaws:ok").await.check(2, "agent.yaml:1:");
}

#[tokio::test]
async fn names_that_two_servers_share_are_explained() {
    let twins = workspace(&["plain", "second"], "    prefix: both\n", "");
    twins.wharf("why ok").await.check(1, "stopped by name/ambiguous");
    let server = gateway_of(&twins);
    assert_eq!(server.ask("GET", "/api/v1/tools", None).0, 200);
    let (_, shown) = server.ask("GET", "/api/v1/tools/plain:ok/why", None);
    assert_eq!(layer(&shown, "name")["code"], "suffixed", "{shown}");
    let renamed = workspace(&["plain"], "    overrides: {ok: {name: fine}}\n", "")
        .wharf("why plain__fine --json")
        .await;
    let shown = renamed.json();
    assert_eq!(layer(&shown, "name")["code"], "renamed", "{shown}");
}

#[tokio::test]
async fn servers_that_do_not_start_are_explained() {
    let modern = workspace(&["plain"], "    era: modern\n", "");
    modern.wharf("why plain:ok").await.check(1, "stopped by capability/era");
    let gone = workspace(&["plain"], "", "");
    fs::remove_file(gone.path("server.py")).expect("the server");
    gone.wharf("why plain:ok").await.check(1, "stopped by discovery/failed");
    let server = gateway_of(&workspace(&["plain", "second"], "", "[calls]\nmax_processes = 1\n"));
    assert_eq!(server.ask("GET", "/api/v1/tools", None).0, 200);
    let why = |tool: &str| server.ask("GET", &format!("/api/v1/tools/{tool}/why"), None).1;
    let answers = [why("plain:ok"), why("second:ok")];
    let is_limited =
        |it: &&Value| it["stopped_by"]["layer"] == "processes" && it["stopped_by"]["code"] == "limit";
    assert_eq!(answers.iter().filter(is_limited).count(), 1, "{answers:?}");
}

pub(super) fn layer<'a>(explanation: &'a Value, name: &str) -> &'a Value {
    let layers = explanation["layers"].as_array().expect("layers");
    layers.iter().find(|it| it["layer"] == name).unwrap_or_else(|| panic!("no `{name}`: {explanation}"))
}

/// Starts a gateway with the Todo server, this text before `tools:`, and these settings.
fn gateway(head: &str, settings: &str, faults: &str) -> Server {
    let folder = TempDir::new().expect("a folder");
    let agent =
        format!("{head}tools:\n  - {{name: todo, description: d, type: mcp, server: 'builtin:todo'}}\n");
    fs::write(folder.path().join("agent.yaml"), agent).expect("a file");
    fs::write(folder.path().join("faults.yaml"), faults).expect("a file");
    let path = folder.path().join("wharf.toml").display().to_string();
    fs::write(&path, settings).expect("a file");
    let server = Server::start_with(folder, &["--faults", "faults.yaml", "--settings", &path], &[]);
    assert_eq!(server.ask("GET", "/api/v1/tools", None).0, 200);
    server
}

const NO_FAULTS: &str = "faults: [{model: true, kind: drop}]\n";

#[test]
fn approval_of_the_models_calls_is_explained() {
    let rules = "approval: {ask: ['todo:create_*'], deny: ['todo:delete_*']}\n";
    let server = gateway(rules, "", NO_FAULTS);
    let why =
        |tool: &str, query: &str| server.ask("GET", &format!("/api/v1/tools/{tool}/why{query}"), None).1;
    let asked = why("todo:create_todo", "?for=agent");
    assert_eq!((&asked["verdict"], &layer(&asked, "ask")["code"]), (&json!("callable"), &json!("asked")));
    assert!(
        layer(&asked, "ask")["detail"].as_str().is_some_and(|it| it.contains("todo:create_*")),
        "{asked}"
    );
    assert!(layer(&asked, "ask")["at"].as_str().is_some_and(|it| it.ends_with("agent.yaml:1:18")), "{asked}");
    let denied = why("todo:delete_todo", "?for=agent");
    assert_eq!(
        (&denied["stopped_by"]["layer"], &denied["stopped_by"]["code"]),
        (&json!("ask"), &json!("denied"))
    );
    let at = denied["stopped_by"]["at"].as_str();
    assert!(at.is_some_and(|it| it.ends_with("agent.yaml:1:43")), "{denied}");
    assert_eq!(why("todo:delete_todo", "")["verdict"], "callable", "other clients do not need approval");

    let exit = |words: &[&str]| {
        let output = wharf(&server.folder).arg("why").args(words).output().expect("wharf runs");
        output.status.code()
    };
    assert_eq!(exit(&["todo:create_todo", "--for", "agent", "--expect", "asked"]), Some(0));
    assert_eq!(exit(&["todo:create_todo", "--for", "agent", "--expect", "callable"]), Some(1));
    assert_eq!(exit(&["todo:list_todos", "--for", "agent", "--expect", "asked"]), Some(1));
    assert_eq!(exit(&["todo:list_todos", "--for", "agent", "--expect", "callable"]), Some(0));
    assert_eq!(exit(&["todo:delete_todo", "--for", "agent", "--expect", "hidden"]), Some(0));
    assert_eq!(exit(&["todo:create_todo", "--expect", "asked"]), Some(1));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "no async runtime runs here")]
fn limit_of_concurrent_calls_is_explained() {
    let faults = "faults: [{tool: 'todo:list_*', kind: delay, ms: 2000}]\n";
    let server = gateway("", "[server]\nmax_calls = 1\n", faults);
    let why = || server.ask("GET", "/api/v1/tools/todo:create_todo/why", None).1;
    assert_eq!(layer(&why(), "limit")["detail"], "0 of 1 concurrent calls");
    thread::scope(|scope| {
        scope.spawn(|| {
            server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&json!({ "arguments": {} })))
        });
        let full = (0..60).find_map(|_| {
            thread::sleep(Duration::from_millis(25));
            Some(why()).filter(|it| it["verdict"] == "stopped")
        });
        let full = full.expect("the call takes two seconds");
        assert_eq!(
            (&full["stopped_by"]["layer"], &full["stopped_by"]["code"]),
            (&json!("limit"), &json!("calls"))
        );
    });
}

#[test]
fn tools_that_are_found_by_a_question_and_disabled_tools_are_explained() {
    let head = "context: {clients: search, pin: ['todo:list_*']}\n";
    let server = gateway(head, "", NO_FAULTS);
    let why = |tool: &str| server.ask("GET", &format!("/api/v1/tools/{tool}/why"), None).1;
    assert_eq!(layer(&why("todo:create_todo"), "offer")["code"], "deferred");
    assert_eq!(layer(&why("todo:list_todos"), "offer")["code"], Value::Null);
    let off = json!({ "enabled": false, "reason": "not today" });
    assert_eq!(server.ask("PATCH", "/api/v1/tools/todo:create_todo", Some(&off)).0, 200);
    let stopped = why("todo:create_todo");
    assert_eq!(
        (&stopped["stopped_by"]["layer"], &stopped["stopped_by"]["code"]),
        (&json!("switch"), &json!("switched_off")),
        "{stopped}"
    );
    let message = stopped["stopped_by"]["message"].as_str().expect("a message");
    assert!(message.starts_with("`operator` disabled the tool at 20"), "{message}");
    assert!(message.ends_with(": not today"), "{message}");
}

#[tokio::test]
async fn server_that_is_starting_is_pending() {
    let slow = workspace(&["slow"], "", "");
    let server = gateway_of(&slow);
    let (_, pending) = server.ask("GET", "/api/v1/tools/slow:ok/why", None);
    assert_eq!(pending["stopped_by"]["code"], "pending", "{pending}");
}
