//! Tests traces as a collector receives them: parents, names and attributes of spans, that none is lost at the end,
//! and that nothing waits for a collector that does not respond.

mod collector;
mod fake_source;

use collector::{Collector, Span};
use fake_source::FakeSource;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    process::Stdio,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};
use wharf_mcp::{
    Raw, Request, Session,
    http::{HttpClient, HttpEndpoint},
    session::{ClientInfo, Connected, Era, EraHint, Options},
    stdio,
};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/telemetry.md");

const TOKEN: &str = "a-token-for-traced-calls";
const SECRET: &str = "hunter2-of-the-far-server";
const KEY: &str = "hunter3-of-the-collector";

/// Timeout for each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Trace and span of the caller.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

struct Gateway {
    child: Child,
    _said: Lines<BufReader<ChildStdout>>,
    address: String,
    folder: TempDir,
}

impl Gateway {
    async fn start(fake_source: &FakeSource, variables: &[(&str, &str)], settings: &str) -> Gateway {
        let folder = TempDir::new().expect("a folder");
        let agent_file = format!(
            "tools:\n  - {{name: todo, description: d, type: mcp, server: 'builtin:todo'}}\n  - {{name: far, \
             description: d, type: mcp, server: x, transport: http, url: '{}', headers: {{X-Key: '${{FAR_KEY}}'}}}}\n",
            fake_source.url
        );
        fs::write(folder.path().join("agent.yaml"), agent_file).expect("a file");
        fs::write(folder.path().join("wharf.toml"), settings).expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_wharf"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .current_dir(folder.path())
            .env("WHARF_HOME", folder.path())
            .env("WHARF_TOKEN", TOKEN)
            .env("FAR_KEY", SECRET)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let mut said = BufReader::new(child.stdout.take().expect("its stdout")).lines();
        let address = loop {
            let line = timeout(STEP_TIMEOUT, said.next_line()).await.expect("in time").expect("a line");
            let line = line.expect("it says where it is");
            if let Some(address) = line.strip_prefix("MCP   http://").and_then(|it| it.strip_suffix("/mcp")) {
                break address.to_owned();
            }
        };
        Gateway { child, _said: said, address, folder }
    }

    async fn connect(&self, era: Era) -> Connected {
        let url = format!("http://{}/mcp", self.address).parse().expect("a URL");
        let mut endpoint = HttpEndpoint::new(url, HttpClient::new(STEP_TIMEOUT).expect("a client"));
        endpoint.headers.insert("authorization", format!("Bearer {TOKEN}").parse().expect("a header"));
        let client = ClientInfo { name: "a caller".into(), version: "1".into() };
        let options = Options { era: EraHint::Only(era), ..Options::new(client) };
        Session::connect(&endpoint, &options).await.expect("a session")
    }

    /// Makes a REST call as part of the caller's trace.
    async fn rest(&self, tool: &str, arguments: Value) -> Value {
        let traceparent = format!("traceparent: 00-{TRACE}-{SPAN}-01");
        let body = json!({ "arguments": arguments }).to_string();
        let path = format!("/api/v1/tools/{tool}/call");
        collector::post(
            &self.address,
            &path,
            &[&traceparent, &format!("Authorization: Bearer {TOKEN}")],
            &body,
        )
        .await
    }

    /// Sends SIGTERM. Returns the exit code, the duration of the shutdown, and the log.
    async fn terminate(mut self) -> (Option<i32>, Duration, String) {
        let pid = i32::try_from(self.child.id().expect("it runs")).expect("a process");
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        let asked = Instant::now();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let mut log = String::new();
        let mut stderr = self.child.stderr.take().expect("its stderr");
        let read = timeout(STEP_TIMEOUT, stderr.read_to_string(&mut log)).await;
        read.expect("it ends").expect("its last words");
        let status = timeout(STEP_TIMEOUT, self.child.wait()).await.expect("it ends").expect("a status");
        drop(self.folder);
        (status.code(), asked.elapsed(), log)
    }
}

fn call(tool: &str, arguments: Value) -> Request {
    Request::call_tool(tool, Some(&Raw::from(arguments)))
}

async fn disconnect(connected: Connected) {
    drop(connected.session);
    connected.task.join().await;
}

/// Returns the spans with this attribute.
fn spans_with<'a>(spans: &'a [Span], name: &str, value: &str) -> Vec<&'a Span> {
    spans.iter().filter(|it| it.attributes.get(name).is_some_and(|it| it == value)).collect()
}

fn only_span<'a>(spans: &'a [Span], kind: u64, name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|it| it.kind == kind && it.name == name).collect();
    assert_eq!(found.len(), 1, "{kind} {name}: {spans:#?}");
    found[0]
}

const SERVER: u64 = 2;
const CLIENT: u64 = 3;
const ERROR: u64 = 2;

#[tokio::test]
async fn call_is_one_trace_from_caller_to_source() {
    let (collector, fake_source) = (Collector::start(true).await, FakeSource::start().await);
    let headers = format!("x-collector-key={KEY}");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", &headers),
        ("OTEL_SERVICE_NAME", "harbour"),
    ];
    let gateway = Gateway::start(&fake_source, &variables, "").await;
    let connected = gateway.connect(Era::Legacy).await;
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let traced = |request: Request| request.traced(&parent, Some("vendor=x"));
    let session = &connected.session;
    session.request(traced(call("far__echo", json!({ "text": "a" })))).await.expect("an answer");
    session.request(traced(call("far__refuse", json!({})))).await.expect("an answer");
    session.request(traced(call("far__break", json!({})))).await.expect_err("an error");
    session.request(traced(call("made_up_by_anybody", json!({})))).await.expect_err("an error");
    session.request(traced(Request::new("tools/list"))).await.expect("an answer");
    session.request(traced(Request::get_prompt("far__greet", None))).await.expect("an answer");
    session.request(traced(Request::read_resource("far://one?key=hunter4"))).await.expect("an answer");
    disconnect(connected).await;
    let (code, _, log) = gateway.terminate().await;
    assert_eq!(code, Some(0), "{log}");
    let spans = collector.spans();

    // The caller's span is the parent of our server span, which is the parent of our client span.
    let server = only_span(&spans, SERVER, "tools/call far__echo");
    let client = only_span(&spans, CLIENT, "tools/call echo");
    assert_eq!((server.trace.as_str(), server.parent.as_deref()), (TRACE, Some(SPAN)));
    assert_eq!((client.trace.as_str(), client.parent.as_ref()), (TRACE, Some(&server.id)));
    assert!(server.start <= client.start && client.end <= server.end, "{server:?} {client:?}");

    // The source receives the trace context in `_meta` and in the header, including the caller's `tracestate`.
    let received = fake_source.received("echo");
    let expected = format!("00-{TRACE}-{}-01", client.id);
    assert_eq!(
        (received.meta["traceparent"].as_str(), received.header.as_deref()),
        (Some(&*expected), Some(&*expected))
    );
    assert_eq!(received.meta["tracestate"], "vendor=x");

    check_attributes(&spans, server, client);
    check_prompts_and_resources(&spans, &fake_source);
    assert_eq!(collector.resource("service.name").as_deref(), Some("harbour"));
    assert_eq!(collector.header("x-collector-key").as_deref(), Some(KEY));
    for secret in [SECRET, KEY, TOKEN] {
        assert!(!collector.text().contains(secret) && !log.contains(secret), "{secret} is exposed");
    }
}

/// Checks names and attributes against the MCP conventions.
fn check_attributes(spans: &[Span], server: &Span, client: &Span) {
    let says = |span: &Span, expected: &[(&str, &str)]| {
        for (name, value) in expected {
            assert_eq!(span.attributes.get(*name).map(String::as_str), Some(*value), "{name} of {span:#?}");
        }
    };
    says(
        server,
        &[
            ("mcp.method.name", "tools/call"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "far__echo"),
            ("mcp.protocol.version", "2025-11-25"),
            ("network.transport", "tcp"),
            ("network.protocol.name", "http"),
        ],
    );
    assert!(server.attributes.contains_key("mcp.session.id"), "{server:#?}");
    assert!(server.attributes["jsonrpc.request.id"].parse::<u64>().is_ok(), "{server:#?}");
    says(
        client,
        &[
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "echo"),
            ("wharf.source", "far"),
            ("mcp.protocol.version", "2026-07-28"),
            ("network.transport", "tcp"),
        ],
    );
    assert_eq!((server.status, client.status), (0, 0));

    for name in ["tools/call refuse", "tools/call far__refuse"] {
        let refused = spans.iter().find(|it| it.name == name).expect("a span");
        says(refused, &[("error.type", "tool_error")]);
        assert_eq!(refused.status, ERROR);
    }
    let refused = only_span(spans, CLIENT, "tools/call refuse");
    assert!(refused.message.contains("no, and ***"), "{refused:#?}");
    for name in ["tools/call break", "tools/call far__break"] {
        let broken = spans.iter().find(|it| it.name == name).expect("a span");
        says(broken, &[("error.type", "-32050"), ("rpc.response.status_code", "-32050")]);
        assert_eq!(broken.status, ERROR);
    }
    // Unknown tool names are not used as span names, and a call that reached no source has no client span.
    let unknown = only_span(spans, SERVER, "tools/call");
    says(unknown, &[("gen_ai.tool.name", "made_up_by_anybody"), ("error.type", "-32602")]);
    assert!(spans_with(spans, "gen_ai.tool.name", "made_up_by_anybody").len() == 1);
    only_span(spans, SERVER, "tools/list");
}

/// Checks that prompts and resources appear in the same trace.
fn check_prompts_and_resources(spans: &[Span], fake_source: &FakeSource) {
    for (server_span, client_span, attribute, value) in [
        ("prompts/get far__greet", "prompts/get greet", "gen_ai.prompt.name", "greet"),
        ("resources/read", "resources/read", "mcp.resource.uri", "far://one"),
    ] {
        let (server, client) = (only_span(spans, SERVER, server_span), only_span(spans, CLIENT, client_span));
        assert_eq!((client.trace.as_str(), client.parent.as_ref()), (TRACE, Some(&server.id)));
        assert_eq!(client.attributes[attribute], value);
        assert_eq!((&*client.attributes["wharf.source"], client.status), ("far", 0));
        let method = client_span.split(' ').next().unwrap_or_default();
        assert_eq!(fake_source.received(method).meta["traceparent"], format!("00-{TRACE}-{}-01", client.id));
    }
}

#[tokio::test]
async fn all_spans_are_exported_at_shutdown() {
    const CALLS: usize = 300;
    let (collector, fake_source) = (Collector::start(true).await, FakeSource::start().await);
    // Uses the documented example, except for the address, the key and the sampling ratio.
    let page = fs::read_to_string(PAGE).expect("the page");
    let block = page.split("```toml\n").nth(1).and_then(|it| it.split("```").next()).expect("an example");
    let settings =
        block.replace("http://127.0.0.1:4318", &collector.url).replace('…', KEY).replace("0.1 ", "1.0 ");
    let gateway =
        Gateway::start(&fake_source, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")], &settings)
            .await;
    let connected = gateway.connect(Era::Modern).await;
    for number in 0..CALLS {
        let made =
            connected.session.request(call("todo__create_todo", json!({ "title": number.to_string() })));
        made.await.expect("an answer");
    }
    let made = gateway.rest("todo:create_todo", json!({ "title": "over REST" })).await;
    assert_eq!(made["success"], true, "{made}");
    disconnect(connected).await;
    let (code, _, log) = gateway.terminate().await;
    assert_eq!(code, Some(0), "{log}");
    let spans = collector.spans();

    let mut traces: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    spans.iter().filter(|it| it.name.contains("create_todo")).for_each(|it| {
        traces.entry(&it.trace).or_default().push(it);
    });
    // Each call has its own trace with a server span and a client span, except the call with the caller's trace.
    traces.remove(TRACE).expect("the caller's trace");
    assert_eq!((traces.len(), traces.values().filter(|it| it.len() == 2).count()), (CALLS, CALLS));

    let rest = only_span(&spans, SERVER, "POST /api/v1/tools/{tool_id}/call");
    assert_eq!((rest.trace.as_str(), rest.parent.as_deref()), (TRACE, Some(SPAN)));
    assert_eq!(rest.attributes["http.response.status_code"], "200");
    let below = spans.iter().filter(|it| it.parent.as_ref() == Some(&rest.id)).count();
    assert_eq!(below, 1);
    assert_eq!(collector.header("api-key").as_deref(), Some(KEY));
}

#[tokio::test]
async fn stdio_calls_are_traced() {
    let collector = Collector::start(true).await;
    let folder = TempDir::new().expect("a folder");
    let mut command = stdio::Command::new(env!("CARGO_BIN_EXE_wharf"), folder.path());
    command.args = vec!["stdio".into()];
    command.env = vec![
        ("WHARF_HOME".into(), folder.path().into()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT".into(), collector.url.as_str().into()),
    ];
    let options = Options::new(ClientInfo { name: "a desktop".into(), version: "1".into() });
    let connected = Session::connect(&command, &options).await.expect("a session");
    let made = connected.session.request(call("todo__create_todo", json!({ "title": "Milk" })));
    made.await.expect("an answer");
    // The program exits when its client disconnects, but sends all spans first.
    disconnect(connected).await;
    let spans = collector.spans();
    let server = only_span(&spans, SERVER, "tools/call todo__create_todo");
    let client = only_span(&spans, CLIENT, "tools/call create_todo");
    assert_eq!((&server.attributes["network.transport"], &client.trace), (&"pipe".to_owned(), &server.trace));
    assert_eq!((server.parent.as_ref(), client.parent.as_ref()), (None, Some(&server.id)));
}

#[tokio::test]
async fn hanging_collector_delays_no_call() {
    let (collector, fake_source) = (Collector::start(false).await, FakeSource::start().await);
    let gateway = Gateway::start(&fake_source, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)], "").await;
    let connected = gateway.connect(Era::Modern).await;
    let begun = Instant::now();
    let mut number = 0;
    // Continues until a batch hangs, and for a while after that.
    while !collector.has_requests() || number < 100 {
        let made =
            connected.session.request(call("todo__create_todo", json!({ "title": number.to_string() })));
        timeout(Duration::from_secs(20), made).await.expect("nobody waits").expect("an answer");
        number += 1;
        assert!(begun.elapsed() < STEP_TIMEOUT, "the collector is never asked");
    }
    disconnect(connected).await;
    let (code, took, log) = gateway.terminate().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(took < Duration::from_secs(30), "it took {took:?} to end");
    assert!(log.contains("did not accept the last spans in time"), "{log}");
}

#[tokio::test]
async fn exporter_none_wins_over_the_endpoint_in_the_settings() {
    let (collector, fake_source) = (Collector::start(true).await, FakeSource::start().await);
    let settings = format!("[telemetry]\nendpoint = '{}'\n", collector.url);
    let gateway = Gateway::start(&fake_source, &[("OTEL_TRACES_EXPORTER", "none")], &settings).await;
    let made = gateway.rest("todo:create_todo", json!({ "title": "Milk" })).await;
    assert_eq!(made["success"], true, "{made}");
    let (code, _, log) = gateway.terminate().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!collector.has_requests(), "{:#?}", collector.spans());
}

#[tokio::test]
async fn sample_ratio_limits_exported_traces() {
    let (collector, fake_source) = (Collector::start(true).await, FakeSource::start().await);
    let settings = format!("[telemetry]\nendpoint = '{}'\nsample_ratio = 0\n", collector.url);
    let gateway = Gateway::start(&fake_source, &[], &settings).await;
    let connected = gateway.connect(Era::Modern).await;
    connected.session.request(call("far__echo", json!({ "text": "a" }))).await.expect("an answer");
    // A sampled trace of the caller is always recorded, whatever our sampling ratio.
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let traced = call("far__echo", json!({ "text": "b" })).traced(&parent, None);
    connected.session.request(traced).await.expect("an answer");
    disconnect(connected).await;
    assert_eq!(gateway.terminate().await.0, Some(0));
    let spans = collector.spans();
    assert!(spans.iter().all(|it| it.trace == TRACE), "{spans:#?}");
    assert_eq!(spans.len(), 2, "{spans:#?}");
    let sampled: Vec<bool> = fake_source.all_received("echo").iter().map(|it| it.is_sampled()).collect();
    assert_eq!(sampled, [false, true]);
}
