//! Tests plugins: folders with a manifest, whose servers are really started.

use super::registered_sources::{MACHINE_TOKEN, with_launchers, workers};
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{fs, thread::sleep, time::Duration};

const SETTINGS: &str = "[grants]\nprocesses_over_rest = true\nplugin_roots = [\"FOLDER/plugins\"]\n";

/// A manifest in the format of the tools provider. It requires a secret.
const CLOCK: &str = r#"{
  "name": "clock",
  "version": "1.0.0",
  "description": "The time",
  "packages": [{
    "name": "default",
    "transport_type": "stdio",
    "runtime": "uvx",
    "command": ["mcp-server-time"],
    "environment_variables": [
      { "name": "CLOCK_TOKEN", "description": "Winds it up", "required": true, "secret": true }
    ]
  }]
}"#;

/// A manifest in the format of the official registry.
const MEMORY: &str = r#"{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "io.github.modelcontextprotocol/server-memory",
  "description": "What is to be remembered",
  "version": "1.0.0",
  "packages": [{
    "registryType": "npm",
    "identifier": "@modelcontextprotocol/server-memory",
    "transport": { "type": "stdio" },
    "environmentVariables": [{ "name": "MEMORY_FILE_PATH", "isRequired": true, "format": "filepath" }]
  }]
}"#;

/// A server that reports its secret and its process id. It has a second tool while the file `more` exists.
const SCRIPT: &str = r#"
import json, os, sys
def tools():
    names = ["tell"] + (["more"] if os.path.exists(os.path.join(os.path.dirname(__file__), "more")) else [])
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
def tell():
    secrets = [os.environ.get(name) for name in ("TOKEN", "MACHINE_TOKEN", "WHARF_HOME", "HOME_TOKEN")]
    print("I know", secrets, file=sys.stderr, flush=True)
    text = json.dumps({"pid": os.getpid(), "secrets": secrets})
    return {"content": [{"type": "text", "text": text}]}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    method = request["method"]
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "script", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = tools()
    elif method == "tools/call":
        answer["result"] = tell()
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

const SCRIPTED: &str = r#"{
  "name": "script",
  "version": "1.0.0",
  "packages": [{ "transport_type": "stdio", "runtime": "python", "command": ["server.py"],
    "environment_variables": [
      { "name": "TOKEN", "required": true, "secret": true },
      { "name": "MACHINE_TOKEN", "secret": true },
      { "name": "WHARF_HOME" },
      { "name": "HOME_TOKEN" }] }]
}"#;

/// Creates a plugin folder with these files below the plugin root.
fn plugin(server: &Server, name: &str, files: &[(&str, &str)]) -> String {
    let folder = server.folder.path().canonicalize().expect("a path").join("plugins").join(name);
    fs::create_dir_all(&folder).expect("a folder");
    for (file, text) in files {
        fs::write(folder.join(file), text).expect("a file");
    }
    folder.display().to_string()
}

fn register(server: &Server, body: &Value) -> Value {
    let (status, source) = server.ask("POST", "/api/v1/sources", Some(body));
    assert_eq!(status, 201, "{source}");
    source
}

fn call(server: &Server, tool: &str, arguments: Value) -> (u16, Value) {
    server.ask("POST", &format!("/api/v1/tools/{tool}/call"), Some(&json!({ "arguments": arguments })))
}

fn wait_for_no_workers(server: &Server) {
    let gone = (0..400).any(|_| {
        sleep(Duration::from_millis(25));
        workers(server).is_empty()
    });
    assert!(gone, "{:?}", workers(server));
}

/// A plugin that requires a secret, registered without it and with it.
#[test]
fn plugin_starts_once_its_variables_are_set() {
    let server = with_launchers(SETTINGS);
    let folder = plugin(&server, "clock", &[("plugin.json", CLOCK)]);
    let body = json!({ "name": "Clock MCP", "url": "mcp://clock-plugin", "source_type": "mcp", "mcp_plugin_dir": folder,
        "mcp_transport_type": "stdio", "mcp_runtime_hint": "uvx", "mcp_lifecycle_mode": "transient" });
    let source = register(&server, &body);
    assert_eq!(
        (&source["state"], &source["missing"], &source["inventory"], &source["health"]),
        (&json!("not_ready"), &json!(["CLOCK_TOKEN"]), &Value::Null, &json!("unknown")),
        "{source}"
    );
    let now = || call(&server, "Clock%20MCP:get_current_time", json!({ "timezone": "Europe/Berlin" }));
    let (status, refused) = now();
    assert_eq!((status, &refused["type"]), (503, &json!("MCPConfigError")), "{refused}");
    assert!(refused["detail"].to_string().contains("`CLOCK_TOKEN` is not set"), "{refused}");
    assert_eq!(server.ask("POST", "/api/v1/sources/Clock%20MCP/refresh", None).0, 503);
    assert!(workers(&server).is_empty(), "{:?}", workers(&server));
    assert!(!server.folder.path().join("home/scratch").exists(), "nothing was ever started");

    let given = json!({ "mcp_env_vars": { "CLOCK_TOKEN": "canary-f6-winding" } });
    let (status, ready) = server.ask("PATCH", "/api/v1/sources/Clock%20MCP", Some(&given));
    assert_eq!((status, &ready["state"], &ready["missing"]), (200, &json!("ready"), &json!([])), "{ready}");
    let (status, time) = now();
    assert_eq!((status, &time["success"]), (200, &json!(true)), "{time}");
    assert!(time["content"].to_string().contains("Europe/Berlin"), "{time}");
    wait_for_no_workers(&server);
}

/// A registry manifest with an npm package, and one process for all calls.
#[test]
fn registry_manifest_is_a_plugin() {
    let server = with_launchers(SETTINGS);
    let folder = plugin(&server, "memory", &[("server.json", MEMORY)]);
    let body = json!({ "name": "memory", "source_type": "mcp", "mcp_plugin_dir": folder,
        "mcp_lifecycle_mode": "singleton",
        "mcp_env_vars": { "MEMORY_FILE_PATH": server.folder.path().join("memory.jsonl") } });
    let source = register(&server, &body);
    assert_eq!(
        (&source["state"], &source["description"], &source["lifecycle"]),
        (&json!("ready"), &json!("What is to be remembered"), &json!("singleton")),
        "{source}"
    );
    let tools = source["inventory"]["tools_created"].as_u64().expect("a number");
    assert!(tools >= 9 && source["tools"] == tools, "{source}");
    let entities = json!([{ "name": "wharf", "entityType": "program", "observations": ["docks"] }]);
    assert_eq!(call(&server, "memory:create_entities", json!({ "entities": entities })).0, 200);
    let (status, graph) = call(&server, "memory:read_graph", json!({}));
    assert_eq!((status, &graph["structured_content"]["entities"]), (200, &entities), "{graph}");
    assert!(!workers(&server).is_empty(), "it stays");
    assert_eq!(server.ask("DELETE", "/api/v1/sources/memory", None).0, 204);
    wait_for_no_workers(&server);
}

/// A script in the plugin folder gets its secret, starts for each call and exits afterwards.
#[test]
fn plugin_script_starts_for_each_call() {
    let server = with_launchers(SETTINGS);
    let folder = plugin(&server, "script", &[("plugin.json", SCRIPTED), ("server.py", SCRIPT)]);
    let canary = "canary-e5-0b1d77c2";
    let body = json!({ "name": "script", "source_type": "mcp", "mcp_plugin_dir": folder,
        "mcp_env_vars": { "TOKEN": canary } });
    let source = register(&server, &body);
    assert_eq!((&source["lifecycle"], &source["tools"]), (&json!("transient"), &json!(1)), "{source}");
    let tell = || {
        let (status, result) = call(&server, "script:tell", json!({}));
        assert_eq!(status, 200, "{result}");
        let text = result["content"][0]["text"].as_str().expect("text").to_owned();
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let (first, second) = (tell(), tell());
    assert_eq!(
        first["secrets"],
        json!([canary, MACHINE_TOKEN, null, null]),
        "only what it declares and is not ours"
    );
    assert_ne!(first["pid"], second["pid"]);
    wait_for_no_workers(&server);

    let refresh = || server.ask("POST", "/api/v1/sources/script/refresh", None);
    fs::write(format!("{folder}/more"), "").expect("a file");
    let (status, more) = refresh();
    assert_eq!(
        (status, &more["tools_discovered"], &more["tools_created"]),
        (200, &json!(2), &json!(1)),
        "{more}"
    );
    fs::remove_file(format!("{folder}/more")).expect("a file");
    assert_eq!(refresh().1["tools_deprecated"], 1);
    fs::write(format!("{folder}/more"), "").expect("a file");
    assert_eq!(refresh().1["tools_updated"], 1);
    // A script that other users could modify is not started.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(format!("{folder}/server.py"), open).expect("a mode");
    let (status, refused) = refresh();
    assert_eq!(status, 503, "{refused}");
    assert_eq!(call(&server, "script:tell", json!({})).0, 503);
    let (_, calls) = server.ask("GET", "/api/v1/calls", None);
    assert!(
        calls.to_string().contains("***") && server.log().contains("I know"),
        "{calls}\n{}",
        server.log()
    );
    for text in [calls.to_string(), server.log(), server.ask("GET", "/api/v1/sources", None).1.to_string()] {
        assert!(!text.contains(canary) && !text.contains(MACHINE_TOKEN), "{text}");
    }
    wait_for_no_workers(&server);
}

/// The values of a call win over all others, apply to that call only, and are not recorded.
#[test]
fn call_brings_its_own_values() {
    let server = with_launchers(SETTINGS);
    let folder = plugin(&server, "script", &[("plugin.json", SCRIPTED), ("server.py", SCRIPT)]);
    let (registered, own) = ("registered-8d12f0aa", "own-canary-77ab01c3");
    let plugin = json!({ "name": "script", "source_type": "mcp", "mcp_plugin_dir": folder,
        "mcp_env_vars": { "TOKEN": registered }, "mcp_call_vars": ["TOKEN"] });
    register(&server, &plugin);
    let tell = |tool: &str, env: Value| {
        server.ask(
            "POST",
            &format!("/api/v1/tools/{tool}/call"),
            Some(&json!({ "arguments": {}, "env": env })),
        )
    };
    let secret = |(status, result): (u16, Value)| {
        assert_eq!(status, 200, "{result}");
        let text = result["content"][0]["text"].as_str().expect("text").to_owned();
        serde_json::from_str::<Value>(&text).expect("JSON")["secrets"][0].clone()
    };
    assert_eq!(secret(tell("script:tell", json!({ "TOKEN": own }))), own);
    assert_eq!(secret(tell("script:tell", json!(null))), registered);
    assert_eq!(secret(call(&server, "script:tell", json!({}))), registered);
    for (tool, env, expected) in [
        ("script:tell", json!({ "MACHINE_TOKEN": "x" }), "a call may not set `MACHINE_TOKEN`"),
        ("script:tell", json!({ "LD_PRELOAD": "x" }), "a call may not set `LD_PRELOAD`"),
        ("script:tell", json!({ "TOKEN": 5 }), "`env` is an object"),
        ("todo:list_todos", json!({ "TOKEN": "x" }), "`env` is for registered plugins"),
    ] {
        let (status, refused) = tell(tool, env.clone());
        assert_eq!(status, 400, "{env} {refused}");
        assert!(refused["detail"].to_string().contains(expected), "{env} {refused}");
    }
    assert_eq!(tell("script:nothing", json!({ "TOKEN": own })).0, 404);
    // Without a value of its own, a plugin that needs one can only be called with one.
    let needs = json!({ "name": "needs", "source_type": "mcp", "mcp_plugin_dir": folder, "mcp_call_vars": ["TOKEN"] });
    assert_eq!(register(&server, &needs)["state"], "not_ready");
    assert_eq!(call(&server, "needs:tell", json!({})).0, 503);
    assert_eq!(secret(tell("needs:tell", json!({ "TOKEN": own }))), own);
    // Kept servers have one process for all calls.
    let kept = json!({ "name": "kept", "source_type": "mcp", "mcp_plugin_dir": folder, "mcp_call_vars": ["TOKEN"],
        "mcp_env_vars": { "TOKEN": registered }, "mcp_lifecycle_mode": "singleton" });
    register(&server, &kept);
    assert_eq!(tell("kept:tell", json!({ "TOKEN": own })).0, 400);
    let (_, calls) = server.ask("GET", "/api/v1/calls", None);
    let recorded = calls["items"].as_array().expect("a list").iter();
    assert_eq!(recorded.filter(|it| it["tool_name"] == "tell").count(), 4, "{calls}");
    let (_, breakers) = server.ask("GET", "/api/v1/breakers", None);
    for text in [calls.to_string(), server.log(), server.ask("GET", "/api/v1/sources", None).1.to_string()] {
        assert!(!text.contains(own), "{text}");
    }
    assert!(!breakers.to_string().contains("OPEN"), "{breakers}");
    assert_eq!(server.ask("DELETE", "/api/v1/sources/kept", None).0, 204);
    wait_for_no_workers(&server);
}

/// At most `max_processes` processes run. A further start fails with a hint, and succeeds once another process has
/// exited.
#[test]
fn max_processes_limits_running_servers() {
    let server = with_launchers(&format!("{SETTINGS}[calls]\nmax_processes = 1\n"));
    let folder = plugin(&server, "script", &[("plugin.json", SCRIPTED), ("server.py", SCRIPT)]);
    let body = |name: &str| {
        json!({ "name": name, "source_type": "mcp", "mcp_plugin_dir": folder,
            "mcp_lifecycle_mode": "singleton", "mcp_env_vars": { "TOKEN": "canary-a7-crowded" } })
    };
    register(&server, &body("first"));
    assert_eq!(call(&server, "first:tell", json!({})).0, 200);
    register(&server, &body("second"));
    let token = format!("Authorization: Bearer {}", server.token);
    let headers: &[&str] = &[&token, "Content-Type: application/json"];
    let refused = server.raw("POST", "/api/v1/tools/second:tell/call", headers, Some(&json!({})));
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("\r\nretry-after: 5\r\n"), "{refused}");
    assert!(refused.contains("too many server processes (limit 1)"), "{refused}");
    assert!(refused.contains("`max_processes` in [calls] of wharf.toml"), "{refused}");
    // The running source is not affected.
    assert_eq!(call(&server, "first:tell", json!({})).0, 200);
    assert_eq!(server.ask("DELETE", "/api/v1/sources/first", None).0, 204);
    wait_for_no_workers(&server);
    let runs = (0..100).any(|_| {
        sleep(Duration::from_millis(50));
        server.ask("POST", "/api/v1/sources/second/refresh", None).0 == 200
    });
    assert!(runs && call(&server, "second:tell", json!({})).0 == 200, "there is room again");
}
