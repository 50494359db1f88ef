//! Tests that a recording has what servers ask during calls and which resources they offer, and that a mock does the same.

use crate::{recordings::Mock, servers::workspace::Workspace};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

/// A server that asks for a name during each call, and has a resource and a template.
const SERVER: &str = r#"
import json, sys
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method, id = message["method"], message["id"]
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": message["params"]["protocolVersion"],
              "capabilities": {"tools": {}, "resources": {}}, "serverInfo": {"name": "asking", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]}})
    elif method == "resources/list":
        send({"id": id, "result": {"resources": [{"uri": "notes://b", "name": "b"}, {"uri": "notes://a", "name": "a"}]}})
    elif method == "resources/templates/list":
        send({"id": id, "result": {"resourceTemplates": [{"uriTemplate": "notes://{name}", "name": "note"}]}})
    elif method == "tools/call":
        form = {"message": "Your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
        send({"id": "question", "method": "elicitation/create", "params": form})
        answer = json.loads(sys.stdin.readline())
        while answer.get("id") != "question":
            answer = json.loads(sys.stdin.readline())
        text = "hello " + answer.get("result", {}).get("content", {}).get("name", "nobody")
        send({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
    else:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
"#;

/// Value of a variable, which is a secret and also the answer to the question.
const NAME: &str = "hunter2-hunter2";

fn workspace() -> Workspace {
    Workspace::of_python_server(SERVER, NAME, "")
}

/// Calls a tool of `wharf ARGS` over its pipes, as a client that answers forms. Returns the questions and the responses to
/// the call, to `resources/list` and to `resources/templates/list`.
fn converse(workspace: &Workspace, args: &[&str], tool: &str) -> (Vec<Value>, [Value; 3]) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(args)
        .current_dir(workspace.path(""))
        .env("WHARF_HOME", workspace.path("state"))
        .env("SECRET", NAME)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("wharf runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut send = |message: Value| writeln!(stdin, "{message}").expect("it reads");
    send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "test", "version": "1" } } }));
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next =
        || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("a text")).expect("JSON") };
    while next()["id"] != 0 {}
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let mut questions = Vec::new();
    let requests = [
        ("tools/call", json!({ "name": tool, "arguments": {} })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
    ];
    let mut id = 0;
    let responses = requests.map(|(method, params)| {
        id += 1;
        send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = next();
            if message["method"] == "elicitation/create" {
                let content = json!({ "action": "accept", "content": { "name": NAME } });
                send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": content }));
                questions.push(message["params"].clone());
            } else if message["id"] == id && message.get("method").is_none() {
                break message["result"].clone();
            }
        }
    });
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
    (questions, responses)
}

fn read(workspace: &Workspace, name: &str) -> String {
    fs::read_to_string(workspace.path(name)).expect("a file")
}

#[tokio::test]
async fn questions_and_resource_lists_are_recorded_replayed_and_mocked() {
    let workspace = workspace();
    let file = "demo.cassette.jsonl";
    let (questions, [greeting, resources, templates]) =
        converse(&workspace, &["stdio", "--record", file], "own__greet");
    assert_eq!(greeting["content"][0]["text"], format!("hello {NAME}"));
    assert_eq!(questions.len(), 1, "{questions:?}");

    let recording = read(&workspace, file);
    assert!(!recording.contains(NAME), "{recording}");
    let lines = recording.lines().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    let asked = json!([{
        "method": "elicitation/create", "params": questions[0],
        "answer": { "action": "accept", "content": { "name": "«secret:SECRET»" } },
    }]);
    assert_eq!(lines[2]["call"]["asked"], asked, "{recording}");
    let uris = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.filter_map(|it| it["uri"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(uris(&lines[1]["server"]["resources"]), ["notes://a", "notes://b"], "{recording}");
    assert_eq!(lines[1]["server"]["templates"][0]["uriTemplate"], "notes://{name}", "{recording}");

    // A replay asks nobody, and records the same bytes.
    let again = ["stdio", "--replay", file, "--record", "again.jsonl"];
    let (asked_again, [replayed, _, _]) = converse(&workspace, &again, "own__greet");
    assert_eq!(asked_again, Vec::<Value>::new());
    assert_eq!(replayed["content"][0]["text"], "hello «secret:SECRET»");
    assert_eq!(read(&workspace, "again.jsonl"), recording);

    // A mock asks its client, like the server did.
    let (mocked, [greeting, mocked_resources, mocked_templates]) =
        converse(&workspace, &["mock", file], "greet");
    assert_eq!((mocked.len(), &mocked[0]), (1, &questions[0]), "{mocked:?}");
    assert_eq!(greeting["content"][0]["text"], "hello «secret:SECRET»");
    let mut expected = uris(&resources["resources"]);
    expected.sort();
    assert_eq!(uris(&mocked_resources["resources"]), expected);
    assert_eq!(
        mocked_templates["resourceTemplates"][0]["uriTemplate"],
        templates["resourceTemplates"][0]["uriTemplate"]
    );

    // A client of 2026-07-28 gets the question as a result; the gateway asks its own client.
    let mock = Mock::start(&workspace, "http", &[]);
    let client = format!(
        "tools:\n  - {{name: own, description: d, type: mcp, server: x, transport: http, era: modern, url: '{}'}}\n",
        mock.url
    );
    fs::write(workspace.path("client.yaml"), client).expect("a file");
    let (modern, [greeting, ..]) = converse(&workspace, &["-f", "client.yaml", "stdio"], "own__greet");
    assert_eq!(modern.len(), 1, "{modern:?}");
    assert_eq!(greeting["content"][0]["text"], "hello «secret:SECRET»");
}
