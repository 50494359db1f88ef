//! Tests `--record` and `wharf mock`: a recording answers like the server did, and contains no secret.

use crate::servers::workspace::Workspace;
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

/// A server that returns its arguments and the value of the variable TOKEN.
const SERVER: &str = r#"
import base64, json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "echo", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        result = {"tools": [{"name": "echo", "description": "Says it.", "inputSchema": schema}]}
    elif method == "tools/call":
        token = os.environ.get("TOKEN", "")
        text = json.dumps([message["params"].get("arguments"), token, base64.b64encode(token.encode()).decode()])
        result = {"content": [{"type": "text", "text": text}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A served recording, stopped on drop.
pub(crate) struct Mock {
    child: Child,
    pub(crate) url: String,
}

impl Mock {
    pub(crate) fn start(workspace: &Workspace, transport: &str, options: &[&str]) -> Mock {
        let mut child = Command::new(env!("CARGO_BIN_EXE_wharf"))
            .args(["mock", "demo.cassette.jsonl", "--transport", transport])
            .args(options)
            .current_dir(workspace.path(""))
            .stdout(Stdio::piped())
            .spawn()
            .expect("wharf runs");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut url).expect("its address");
        Mock { child, url: url.trim().to_owned() }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

fn workspace() -> Workspace {
    Workspace::of_python_server(SERVER, "hunter2-hunter2", "")
}

#[tokio::test]
async fn recording_has_no_secret_and_the_same_bytes_each_time() {
    let workspace = workspace();
    workspace
        .wharf("call own:echo path=a.txt --record demo.cassette.jsonl")
        .await
        .check(0, "hunter2-hunter2");
    let first = fs::read_to_string(workspace.path("demo.cassette.jsonl")).expect("the recording");
    assert!(!first.contains("hunter2") && !first.contains("aHVudGVyMi"), "{first}");
    assert!(first.contains("«secret:SECRET»"), "{first}");
    assert!(!workspace.path("demo.cassette.jsonl.part").exists());
    workspace.wharf("call own:echo path=a.txt --record demo.cassette.jsonl").await.check(0, "");
    assert_eq!(fs::read_to_string(workspace.path("demo.cassette.jsonl")).expect("the recording"), first);
}

#[tokio::test]
async fn mock_answers_over_every_port_transport_and_names_the_nearest_call() {
    let workspace = workspace();
    workspace.wharf("call own:echo path=a.txt --record demo.cassette.jsonl").await.check(0, "a.txt");
    for (transport, era) in
        [("http", "auto"), ("http", "legacy"), ("http", "modern"), ("sse", "auto"), ("websocket", "auto")]
    {
        let mock = Mock::start(&workspace, transport, &[]);
        let client = format!(
            "tools:\n  - {{name: own, description: d, type: mcp, server: x, transport: {transport}, url: '{}', era: {era}}}\n",
            mock.url
        );
        fs::write(workspace.path("client.yaml"), client).expect("a file");
        workspace.wharf("-f client.yaml call own:echo path=a.txt").await.check(0, "«secret:SECRET»");
        workspace.wharf("-f client.yaml call own:echo path=a.txt").await.check(0, "a.txt");
        let missed = workspace.wharf("-f client.yaml call own:echo path=b.txt").await;
        missed.check(76, r#"nearest: line 3: /path "b.txt", recorded "a.txt""#);
    }
    let mock = Mock::start(&workspace, "http", &["--exhausted", "miss", "--source", "own"]);
    let client = format!(
        "tools:\n  - {{name: own, description: d, type: mcp, server: x, transport: http, url: '{}'}}\n",
        mock.url
    );
    fs::write(workspace.path("client.yaml"), client).expect("a file");
    workspace.wharf("-f client.yaml call own:echo path=a.txt").await.check(0, "a.txt");
    workspace.wharf("-f client.yaml call own:echo path=a.txt").await.check(76, "MCPNotRecordedError");
    workspace.wharf("mock nothing.jsonl").await.check(2, "nothing.jsonl cannot be used");
    workspace.wharf("mock demo.cassette.jsonl --server other").await.check(66, "no server 'other'");
}

/// Two servers with a prompt of the same name, and resources. A prompt of a third server would have the same shown name.
const TWO_SERVERS: &str = r#"{"cassette":{"version":1}}
{"server":{"name":"a","prompts":[{"name":"plan"}],"resources":[{"name":"n","uri":"notes://both"}],"server":{},"templates":[],"tools":[]}}
{"server":{"name":"b","prompts":[{"name":"plan"}],"resources":[{"name":"n","uri":"notes://both"},{"name":"n","uri":"notes://b"}],"server":{},"templates":[],"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}
{"prompt":{"arguments":{},"conversation":"main","n":1,"name":"plan","result":{"messages":[{"content":{"text":"a plan of a","type":"text"},"role":"user"}]},"source":"a"}}
{"prompt":{"arguments":{},"conversation":"main","n":2,"name":"plan","result":{"messages":[{"content":{"text":"a plan of b","type":"text"},"role":"user"}]},"source":"b"}}
{"read":{"conversation":"main","n":3,"result":{"contents":[{"text":"a note of b","uri":"notes://b"}]},"source":"b","uri":"notes://b"}}
"#;

#[tokio::test]
async fn mock_of_several_servers_has_their_prompts_and_resources() {
    let workspace = Workspace::with("");
    fs::write(workspace.path("demo.cassette.jsonl"), TWO_SERVERS).expect("a file");
    let mock = Mock::start(&workspace, "http", &[]);
    let agent = format!(
        "tools:\n  - {{name: m, description: d, type: mcp, server: x, transport: http, url: '{}'}}\n",
        mock.url
    );
    fs::write(workspace.path("agent.yaml"), agent).expect("a file");
    workspace.wharf("prompt m:a__plan").await.check(0, "a plan of a");
    workspace.wharf("prompt m:b__plan").await.check(0, "a plan of b");
    workspace.wharf("read notes://b").await.check(0, "a note of b");
    let listed = workspace.wharf("resources --json").await;
    assert_eq!(
        listed.stdout.matches("notes://both").count(),
        1,
        "one address is one resource: {}",
        listed.stdout
    );
}

/// A mock breaks the connection or the frame itself, so that clients in any language meet the fault.
#[tokio::test]
async fn mock_injects_broken_connections_and_frames_over_every_transport() {
    let workspace = workspace();
    workspace.wharf("call own:echo path=a.txt --record demo.cassette.jsonl").await.check(0, "a.txt");
    let program = env!("CARGO_BIN_EXE_wharf");
    let settings = format!("[grants]\ncommands = [\"{program}\"]\n");
    fs::write(workspace.path("state/wharf.toml"), settings).expect("a file");
    for (kind, code, words) in [
        ("disconnect", 69, "MCPConnectionError"),
        ("malformed", 76, "MCPProtocolError"),
        ("drop, nth: [9]", 0, "a.txt"),
    ] {
        let faults = format!("faults: [{{tool: 'own:echo', kind: {kind}}}]\n");
        fs::write(workspace.path("faults.yaml"), faults).expect("a file");
        for transport in ["stdio", "http", "sse", "websocket"] {
            let (_mock, entry) = match transport {
                "stdio" => {
                    let path = |name: &str| workspace.path(name).display().to_string();
                    let (cassette, faults) = (path("demo.cassette.jsonl"), path("faults.yaml"));
                    (None, format!("command: {program}, args: [mock, {cassette}, --faults, {faults}]"))
                }
                _ => {
                    let mock = Mock::start(&workspace, transport, &["--faults", "faults.yaml"]);
                    let entry = format!("transport: {transport}, url: '{}'", mock.url);
                    (Some(mock), entry)
                }
            };
            for era in ["legacy", "modern"].into_iter().filter(|it| transport != "sse" || *it == "legacy") {
                let agent = format!(
                    "tools:\n  - {{name: own, description: d, type: mcp, server: x, era: {era}, {entry}}}\n"
                );
                fs::write(workspace.path("agent.yaml"), agent).expect("a file");
                let ran = workspace.wharf("call own:echo path=a.txt --timeout 20").await;
                assert!(ran.code == Some(code), "{kind} over {transport} ({era}): {ran:?}");
                ran.check(code, words);
            }
        }
    }
}
