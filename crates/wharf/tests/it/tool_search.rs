//! Tests catalogs that are larger than the context allows: what a model and clients are offered, and how they reach the rest.

use crate::{
    chat::agent_file, rest::disabled_tools::mcp, serve::server::Server, servers::workspace::program,
};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;
use wharf_runtime::tokens::estimate_definition;

const SERVER: &str = include_str!("tool_search/server.py");

/// Writes the server with 5,000 tools into a folder. Returns its entry of agent.yaml.
fn prepare(folder: &Path) -> String {
    let python = program("python3").canonicalize().expect("a path").display().to_string();
    fs::write(folder.join("server.py"), SERVER).expect("a file");
    fs::write(folder.join("wharf.toml"), format!("[grants]\ncommands = [\"{python}\"]\n")).expect("a file");
    format!(
        "tools:\n  - name: many\n    description: Many tools\n    type: mcp\n    server: own\n    command: {python}\n    args: [{}]\n",
        folder.join("server.py").display()
    )
}

/// Runs the agent with a scripted model that finds a tool and calls it. Returns the requests that the model got.
fn run_agent(context: &str) -> Vec<Value> {
    run_agent_with(&format!("approval: {{allow: ['many:brew_tea']}}\n{context}"))
}

/// Runs the agent with these rules.
fn run_agent_with(settings: &str) -> Vec<Value> {
    let folder = TempDir::new().expect("a folder");
    let tools = prepare(folder.path());
    let call = |id: &str, name: &str, arguments: Value| {
        Reply::calls(Wire::Chat, &[(id, name, &arguments.to_string())])
    };
    let inner = json!({ "name": "many__brew_tea", "arguments": { "cups": 2 } });
    let wrong = json!({ "name": "many__brew_tea", "arguments": { "cups": "two" } });
    let model = ScriptedModel::start(vec![
        call("c1", "wharf__find_tools", json!({ "query": "leaves in hot water" })),
        call("c2", "wharf__call_tool", inner),
        call("c3", "wharf__call_tool", wrong),
        Reply::text(Wire::Chat, "Done."),
    ]);
    let file = agent_file(&model, &format!("{settings}{tools}"));
    fs::write(folder.path().join("agent.yaml"), file).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(["run", "Tea, please", "--settings", "wharf.toml"])
        .current_dir(folder.path())
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("MODEL_KEY", "key-of-the-model")])
        .env("WHARF_HOME", folder.path().join("state"))
        .output()
        .expect("wharf runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    model.requests().into_iter().map(|it| it.body).collect()
}

fn result_text(requests: &[Value], call_id: &str) -> String {
    let messages = requests.last().expect("a request")["messages"].as_array().expect("messages");
    let result = messages.iter().find(|it| it["tool_call_id"] == call_id);
    result.expect("a result")["content"].as_str().expect("a text").to_owned()
}

fn tokens(request: &Value) -> u64 {
    let tools = request["tools"].as_array().expect("tools").iter().map(|it| &it["function"]);
    let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    tools.map(|it| estimate_definition(&text(it, "name"), &text(it, "description"), &it["parameters"])).sum()
}

#[test]
fn five_thousand_tools_stay_within_the_budget_and_can_be_found_and_called() {
    let requests = run_agent("context: {tool_budget: 2000, pin: ['many:list_sensor_1*']}\n");
    assert!(tokens(&requests[0]) <= 2000, "{} tokens", tokens(&requests[0]));
    let names: Vec<&str> = requests[0]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|it| it["function"]["name"].as_str())
        .collect();
    assert_eq!(
        names[..2],
        ["many__list_sensor_1", "many__list_sensor_10"],
        "pinned tools are first: {names:?}"
    );
    assert!(names.contains(&"wharf__find_tools") && names.contains(&"wharf__call_tool"), "{names:?}");
    let found = result_text(&requests, "c1");
    let first: Value = serde_json::from_str(found.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["name"], "many__brew_tea", "{found}");
    assert_eq!(first["input_schema"]["required"], json!(["cups"]));
    assert_eq!(result_text(&requests, "c2"), "brew_tea {\"cups\": 2}");
    assert!(
        result_text(&requests, "c3").contains("invalid arguments for `many__brew_tea`"),
        "the inner call is checked"
    );
}

/// The server lists its tools in another order each time it starts. Equal bytes let the caches of model providers hit.
#[test]
fn list_bytes_are_identical_across_restarts() {
    let offered = || run_agent("context: {tool_budget: 2000, pin: ['many:list_sensor_1*']}\n");
    let bytes = |requests: &[Value]| requests[0]["tools"].to_string();
    assert!(bytes(&offered()) == bytes(&offered()), "the list for the model differs after a restart");

    let mut folder = TempDir::new().expect("a folder");
    let tools = prepare(folder.path());
    fs::write(folder.path().join("agent.yaml"), tools).expect("a file");
    let mut listed = || {
        let settings = folder.path().join("wharf.toml").display().to_string();
        let taken = std::mem::replace(&mut folder, TempDir::new().expect("a folder"));
        let mut server = Server::start_in(taken, &["--settings", &settings]);
        let list = mcp(&server, "tools/list", json!({}))["result"]["tools"].to_string();
        server.child.kill().expect("it ran");
        folder = server.into_folder();
        list
    };
    let first = listed();
    assert!(first.len() > 500_000 && first == listed(), "the list for clients differs after a restart");
}

#[test]
fn the_rules_are_those_of_the_inner_call() {
    let context = "context: {tool_budget: 2000}\n";
    let rows = [
        ("approval: {allow: ['wharf:*']}\n", "denied: the user did not allow this call"),
        (
            "approval: {allow: ['many:*'], deny: ['many:brew_tea']}\n",
            "denied: the configuration did not allow",
        ),
        ("approval: {allow: ['many:brew_*']}\n", "brew_tea {\"cups\": 2}"),
    ];
    for (rules, expected) in rows {
        let result = result_text(&run_agent_with(&format!("{rules}{context}")), "c2");
        assert!(result.starts_with(expected), "{rules}{result}");
    }
}

#[test]
fn clients_that_search_see_few_tools_and_can_call_all() {
    let folder = TempDir::new().expect("a folder");
    let tools = prepare(folder.path());
    fs::write(folder.path().join("agent.yaml"), tools).expect("a file");
    let settings = folder.path().join("wharf.toml").display().to_string();
    let mut text = fs::read_to_string(&settings).expect("the settings");
    text.push_str("[tokens.ci]\nrole = \"caller\"\nvalue = \"${CI}\"\ntool_mode = \"search\"\n");
    fs::write(&settings, text).expect("a file");
    let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("CI", "caller-caller-caller")];
    let server = Server::start_with(folder, &["--settings", &settings], &variables);
    let ask_as = |token: &str, path: &str, method: &str, mut params: Value| -> Value {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} });
        let mut headers = vec![
            format!("Authorization: Bearer {token}"),
            "Content-Type: application/json".to_owned(),
            "Accept: application/json, text/event-stream".to_owned(),
            "MCP-Protocol-Version: 2026-07-28".to_owned(),
            format!("Mcp-Method: {method}"),
        ];
        headers.extend(params["name"].as_str().map(|it| format!("Mcp-Name: {it}")));
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        server.ask_with("POST", path, &headers, Some(&body)).1
    };
    let ask = |path: &str, method: &str, params: Value| ask_as(&server.token, path, method, params);
    let list_as = |token: &str, path: &str| {
        let listed = ask_as(token, path, "tools/list", json!({}));
        listed["result"]["tools"].as_array().expect("tools").len()
    };
    let list = |path: &str| list_as(&server.token, path);
    assert_eq!((list("/mcp"), list("/mcp?tools=search"), list("/mcp?tools=auto")), (5000, 2, 2));
    let list = |path: &str| list_as("caller-caller-caller", path);
    assert_eq!(
        (list("/mcp"), list("/mcp?tools=all")),
        (2, 5000),
        "the token searches, unless its address says all"
    );
    let query =
        json!({ "name": "wharf__find_tools", "arguments": { "query": "leaves in hot water", "limit": 1 } });
    let found = ask("/mcp?tools=search", "tools/call", query.clone());
    assert!(found["result"]["content"][0]["text"].to_string().contains("many__brew_tea"), "{found}");
    let inner = json!({ "name": "many__brew_tea", "arguments": { "cups": 1 } });
    let outer = json!({ "name": "wharf__call_tool", "arguments": inner.clone() });
    for (path, call) in
        [("/mcp?tools=search", outer.clone()), ("/mcp?tools=search", inner.clone()), ("/mcp", inner)]
    {
        let called = ask(path, "tools/call", call);
        assert_eq!(called["result"]["content"][0]["text"], "brew_tea {\"cups\": 1}", "{called}");
    }
    let (_, calls) = server.ask("GET", "/api/v1/calls?tool_name=brew_tea", None);
    assert_eq!(
        calls["items"].as_array().map(Vec::len),
        Some(3),
        "the record is that of the inner call: {calls}"
    );
    for call in [query, outer] {
        let unknown = ask("/mcp", "tools/call", call);
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}

/// A client of the handshake era that began to search goes on, although its later requests do not say so.
#[test]
fn session_keeps_its_tool_mode() {
    let server = Server::start(&[]);
    let token = format!("Authorization: Bearer {}", server.token);
    let accept = "Accept: application/json, text/event-stream";
    let post = |path: &str, session: Option<&str>, body: Value| {
        let session = session.map(|it| format!("Mcp-Session-Id: {it}"));
        let mut headers = vec![token.as_str(), accept, "Content-Type: application/json"];
        headers.extend(session.as_deref());
        server.raw("POST", path, &headers, Some(&body))
    };
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    for (path, count) in [("/mcp?tools=search", 2), ("/mcp", 5)] {
        let opened = post(path, None, begin.clone());
        let header = opened.lines().find(|it| it.to_ascii_lowercase().starts_with("mcp-session-id:"));
        let session = header.and_then(|it| it.split_once(':')).expect("a session").1.trim().to_owned();
        post(path, Some(&session), json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        for path in [path, "/mcp", "/mcp?tools=all", "/mcp?tools=search"] {
            let listed = post(path, Some(&session), list.clone());
            assert_eq!(listed.matches("\"inputSchema\"").count(), count, "{path}: {listed}");
        }
    }
}

#[test]
fn tool_search_page_has_a_valid_example() {
    let page = include_str!("../../../../docs/tool-search.md");
    let example = page.split("```yaml\n").nth(1).and_then(|it| it.split("```").next()).expect("an example");
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), example).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .arg("check")
        .current_dir(folder.path())
        .env("WHARF_HOME", folder.path().join("state"))
        .output()
        .expect("wharf runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
