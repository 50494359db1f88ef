//! Tests registered sources at run time: a plugin's process ends after each call, and no host name may resolve to an
//! internal address.

use crate::{lifecycle::rig::summary, plugin_folder::Plugins};
use serde_json::json;
use std::{collections::BTreeMap, fs, net::TcpListener, path::Path, sync::Arc, time::Duration};
use url::Url;
use wharf_config::{AgentSettings, Egress, Endpoint, Env, Grants, Plan, Source, load, register, restore};
use wharf_runtime::{
    Call, FaultKind, Runtime, RuntimeOptions, Upstream, UpstreamContext,
    upstream::{DeclineAll, ProcessLimit},
};

/// A server with one tool that reports its process id and its inputs.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result, error = message["method"], None, None
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "who", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        said = " ".join([str(os.getpid()), os.environ.get("GREETING", "-"), *sys.argv[1:]])
        result = {"content": [{"type": "text", "text": said}]}
    else:
        error = {"code": -32601, "message": "no"}
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    answer.update({"error": error} if error else {"result": result})
    print(json.dumps(answer), flush=True)
"#;

const MANIFEST: &str = r#"{"name": "who", "packages": [{"runtime": "python", "command": ["server.py", "--own"],
    "environment_variables": [{"name": "GREETING", "required": true}]}]}"#;

fn source(body: &serde_json::Value, env: &Env) -> Source {
    let (registration, diagnostics) = register(&body.to_string(), env);
    let registration = registration.unwrap_or_else(|| panic!("{}", diagnostics.render(false)));
    let (restored, _) = restore(&registration.definition, &registration.secrets, env);
    restored.and_then(|it| it.source).expect("nothing is missing")
}

fn plan(source: Source) -> Plan {
    let (name, description, author) = Default::default();
    Plan {
        name,
        description,
        author,
        model: None,
        instructions: None,
        agent: AgentSettings::default(),
        sources: vec![source],
        lock: None,
        record: wharf_config::RecordSettings::default(),
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn plugin_process_runs_for_one_call() {
    let plugins = Plugins::new();
    let folder = plugins.write("who", "plugin.json", MANIFEST);
    plugins.write("who", "server.py", SERVER);
    let body = json!({ "name": "it", "source_type": "mcp", "mcp_plugin_dir": folder, "mcp_args": ["--more"],
        "mcp_env_vars": { "GREETING": "hello" } });
    let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
    let env = Env { variables: BTreeMap::from([("PATH".to_owned(), path)]), ..plugins.env() };
    let scratch = tempfile::tempdir().expect("a folder");
    let upstream_context = UpstreamContext::plain(scratch.path()).expect("an HTTP client");
    let runtime = Runtime::start(&plan(source(&body, &env)), &upstream_context, RuntimeOptions::default());
    let handle = runtime.handle();
    let listed: Vec<String> = handle.settled().await.tools.iter().map(|it| it.name.to_string()).collect();
    assert_eq!(listed, ["it__who"]);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let output = summary(&handle.call(Call::new("it__who")).await);
        let words: Vec<&str> = output.split(' ').collect();
        let ["ok", process, "hello", "--own", "--more"] = words[..] else { panic!("{output}") };
        assert!(!seen.contains(&process.to_owned()), "{output}");
        wait_for_exit(process).await;
        seen.push(process.to_owned());
    }
    runtime.shutdown(Duration::from_secs(5)).await;
    let left = fs::read_dir(scratch.path())
        .expect("it is there")
        .filter(|it| it.as_ref().is_ok_and(|it| it.file_name().to_string_lossy().starts_with("wharf-")));
    assert_eq!(left.count(), 0);
}

/// The number of processes stays within the limit for all sources together, and a rejected start is not a failure of
/// its source.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn max_processes_limits_running_servers() {
    let plugins = Plugins::new();
    let folder = plugins.write("who", "plugin.json", MANIFEST);
    plugins.write("who", "server.py", SERVER);
    let body = json!({ "name": "it", "source_type": "mcp", "mcp_plugin_dir": folder,
        "mcp_env_vars": { "GREETING": "hello" } });
    let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
    let env = Env { variables: BTreeMap::from([("PATH".to_owned(), path)]), ..plugins.env() };
    let scratch = tempfile::tempdir().expect("a folder");
    let upstream_context = UpstreamContext::plain(scratch.path()).expect("an HTTP client");
    let upstream_context = UpstreamContext { processes: ProcessLimit::at_most(2), ..upstream_context };
    let upstream = Upstream::new(Arc::new(source(&body, &env)), upstream_context.clone());
    let connect = || upstream.connect(Arc::new(DeclineAll));
    let running = [connect().await.expect("one may"), connect().await.expect("two may")];
    let fault = connect().await.expect_err("three may not");
    assert_eq!(fault.kind, FaultKind::ProcessLimitReached);
    let why = fault.message();
    assert!(
        why.starts_with("could not reach `it` (python ")
            && why.ends_with(": too many server processes (limit 2)"),
        "{why}"
    );
    let hint = fault.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("`max_processes` in [calls] of wharf.toml"), "{hint}");

    let runtime = Runtime::start(&plan(source(&body, &env)), &upstream_context, RuntimeOptions::default());
    let handle = runtime.handle();
    handle.settled().await;
    for _ in 0..6 {
        handle.refresh("it").await.expect("there is such a source");
        let record = handle.call(Call::new("it__who")).await;
        assert_eq!(record.fault().map(|it| it.kind), Some(FaultKind::ProcessLimitReached), "{record:?}");
    }
    for live in running {
        live.close().await;
    }
    handle.refresh("it").await.expect("there is such a source");
    let output = summary(&handle.call(Call::new("it__who")).await);
    assert!(output.starts_with("ok "), "{output}");
    runtime.shutdown(Duration::from_secs(5)).await;
}

/// Waits until the process has ended, which may be shortly after its call has returned.
async fn wait_for_exit(process: &str) {
    for _ in 0..600 {
        if !Path::new("/proc").join(process).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("process {process} stays");
}

/// A similar server that uses server-sent events on a given port.
const STREAM: &str = r#"
import http.server, json, os, queue, sys
said = queue.Queue()
class Served(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
        while True:
            self.wfile.write(("data: " + json.dumps(said.get()) + "\n\n").encode())
            self.wfile.flush()
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if "id" not in message:
            return
        answer, method = {"jsonrpc": "2.0", "id": message["id"]}, message["method"]
        if method == "initialize":
            answer["result"] = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "who", "version": "1"}}
        elif method == "tools/list":
            answer["result"] = {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            same = "same" if os.environ["PORT"] == sys.argv[2] else "another"
            answer["result"] = {"content": [{"type": "text", "text": f"{os.getpid()} {same}"}]}
        else:
            answer["error"] = {"code": -32601, "message": "no"}
        said.put(answer)
print("listening soon", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Served).serve_forever()
"#;

/// A server over streamable HTTP that answers every request with one JSON document. Its tool tells its process and
/// whether the variable `PORT` and the argument are the same.
const STREAMABLE: &str = r#"
import http.server, json, os, sys
class Served(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in asked or self.path != "/events":
            self.send_response(202 if self.path == "/events" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] == "initialize":
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "who", "version": "1"}}
        elif asked["method"] == "tools/list":
            answer["result"] = {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}
        elif asked["method"] == "tools/call":
            same = "same" if os.environ["PORT"] == sys.argv[2] else "another"
            answer["result"] = {"content": [{"type": "text", "text": f"{os.getpid()} {same}"}]}
        else:
            answer["error"] = {"code": -32601, "message": "no"}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        self.send_error(405)
print("listening soon", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Served).serve_forever()
"#;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn plugin_may_listen_on_an_assigned_port() {
    for (declared, requested, expected, server) in [
        ("sse", None, "sse", STREAM),
        ("streamable-http", None, "http", STREAMABLE),
        ("streamable-http", Some("streamable_http"), "http", STREAMABLE),
    ] {
        let plugins = Plugins::new();
        let manifest = json!({ "name": "who", "packages": [{
            "runtime": "python", "command": ["server.py"],
            "transport": { "type": declared, "url": "http://localhost:{port}/events" },
            "packageArguments": [{ "type": "named", "name": "--port", "isRequired": true, "format": "number" }],
        }] });
        let folder = plugins.write("who", "plugin.json", &manifest.to_string());
        plugins.write("who", "server.py", server);
        let mut body = json!({ "name": "it", "source_type": "mcp", "mcp_plugin_dir": folder });
        requested.into_iter().for_each(|it| body["mcp_transport_type"] = json!(it));
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        let env = Env { variables: BTreeMap::from([("PATH".to_owned(), path)]), ..plugins.env() };
        let source = source(&body, &env);
        assert_eq!(source.endpoint.transport(), expected);
        let scratch = tempfile::tempdir().expect("a folder");
        let upstream_context = UpstreamContext::plain(scratch.path()).expect("an HTTP client");
        let runtime = Runtime::start(&plan(source), &upstream_context, RuntimeOptions::default());
        let output = summary(&runtime.handle().call(Call::new("it__who")).await);
        let words: Vec<&str> = output.split(' ').collect();
        let ["ok", process, "same"] = words[..] else { panic!("{declared}: {output}") };
        wait_for_exit(process).await;
        runtime.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn host_that_resolves_to_a_private_address_is_not_dialled() {
    let canary = TcpListener::bind("127.0.0.1:0").expect("a port");
    canary.set_nonblocking(true).expect("it can be asked");
    let port = canary.local_addr().expect("an address").port();
    for (transport, scheme) in [("http", "http"), ("sse", "http"), ("websocket", "ws")] {
        let url = format!("{scheme}://localhost:{port}/mcp");
        let body = json!({ "name": "it", "type": "mcp", "server": "s", "transport": transport, "url": url });
        let mut source = source(&body, &Env::bare());
        assert!(source.egress.is_some(), "{transport}");
        // Simulates a host name that resolved to a public address at registration and resolves to this machine now.
        source.egress = Some(Egress { loopback: false, private: false });
        let output = connection_error(source).await;
        assert!(
            output.contains("is an address in a private network, and the egress policy forbids it"),
            "{output}"
        );
        assert!(canary.accept().is_err(), "{transport}: it was dialled");
    }
}

/// Even the operator's own file cannot reach a cloud metadata service, unless the operator grants the host.
#[tokio::test]
async fn metadata_service_is_not_dialled_without_a_grant() {
    let entry = |transport: &str, url: &str| {
        format!(
            "name: a\ntools:\n  - {{name: it, description: d, type: mcp, server: s, transport: {transport}, url: '{url}'}}\n"
        )
    };
    for (transport, scheme) in [("http", "http"), ("http", "https"), ("sse", "https"), ("websocket", "wss")] {
        let secure = if scheme == "wss" { "wss" } else { "https" };
        let text = entry(transport, &format!("{secure}://mcp.example/mcp"));
        let (plan, diagnostics) = load(&text, &Env::bare());
        let mut source = plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false))).sources.remove(0);
        assert_eq!(source.egress, Some(Egress { loopback: true, private: true }), "{transport}");
        // Simulates a host name that resolves to the metadata address.
        let there: Url = format!("{scheme}://169.254.169.254/mcp").parse().expect("an address");
        match &mut source.endpoint {
            Endpoint::Http { remote, .. } | Endpoint::Sse(remote) => remote.url = there,
            Endpoint::WebSocket(url, _) => *url = there,
            other => panic!("{other:?}"),
        }
        let output = connection_error(source).await;
        assert!(
            output.contains("`169.254.169.254` is a link-local, metadata or non-host address"),
            "{transport} {output}"
        );
    }
    for grant in ["private_hosts", "insecure_hosts"] {
        let hosts = vec!["mcp.example".to_owned()];
        let grants = match grant {
            "private_hosts" => Grants { private_hosts: hosts, ..Grants::default() },
            _ => Grants { insecure_hosts: hosts, ..Grants::default() },
        };
        let env = Env { grants, ..Env::bare() };
        let (plan, _) = load(entry("http", "https://mcp.example/mcp"), &env);
        assert_eq!(plan.expect("it is fine").sources[0].egress, None, "{grant}");
    }
}

/// Returns the error of a call to a source whose address is denied. Checks the hint as well.
async fn connection_error(source: Source) -> String {
    let upstream_context = UpstreamContext::plain("unused").expect("an HTTP client");
    let runtime = Runtime::start(&plan(source), &upstream_context, RuntimeOptions::default());
    let output = summary(&runtime.handle().call(Call::new("it__any")).await);
    assert!(
        output.starts_with("MCPConnectionError") || output.starts_with("MCPToolNotFoundError"),
        "{output}"
    );
    let state = format!("{:?}", runtime.handle().sources().remove(0));
    assert!(state.contains("if this is intended, an operator can add the host of `it`"), "{state}");
    runtime.shutdown(Duration::ZERO).await;
    state
}
