//! Tests the streamable HTTP client against scripted servers.

use crate::{eras::options, fake_http::FakeHttp};
use std::time::{Duration, Instant};
use wharf_mcp::{
    Class, Failure, News, Options, Raw, Request, Session,
    http::{HttpClient, HttpEndpoint},
    session::{ClientInfo, Connected, Era, EraHint},
};

const LEGACY: &str = r#"
    POST server/discover: 400 {"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}
    POST initialize: [Mcp-Session-Id: s1] json {"id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
    POST notifications/initialized: 202
    DELETE: 200
"#;
const MODERN: &str = r#"
    POST server/discover: json {"id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}
"#;

fn endpoint(fake: &FakeHttp) -> HttpEndpoint {
    HttpEndpoint::new(fake.url(), HttpClient::new(Duration::from_secs(2)).unwrap())
}

async fn connect(script: &str) -> (FakeHttp, Connected) {
    let fake = FakeHttp::start(script).await;
    let connected = Session::connect(&endpoint(&fake), &options()).await.unwrap();
    (fake, connected)
}

fn describe(outcome: Result<Raw, Failure>) -> String {
    match outcome {
        Ok(result) => result.as_str().to_owned(),
        Err(failure) => {
            format!("{:?} {:?} {:?}: {failure}", failure.class, failure.sent, failure.status)
        }
    }
}

async fn call(connected: &Connected) -> String {
    describe(connected.session.request(Request::call_tool("t", None)).await)
}

#[tokio::test]
async fn every_response_has_one_outcome_at_once() {
    for (rules, expected) in [
        (r#"POST tools/call: json {"id":$id,"result":1}"#, "1"),
        (r#"POST tools/call: sse data: {"id":$id,"result":1}\n\n"#, "1"),
        (
            r#"POST tools/call: sse+ : hi\n\ndata: {"method":"x"}\n\ndata: {"id":$id,\ndata: "result":1}\n\n"#,
            "1",
        ),
        // The stream ends; the response arrives after resumption.
        (
            "POST tools/call: sse retry: 10\\nid: e1\\ndata: {\"method\":\"x\"}\\n\\n
             GET: 405
             GET: 405
             GET: sse data: {\"id\":3,\"result\":1}\\n\\n",
            "1",
        ),
        (
            r#"POST tools/call: sse data: {"method":"x"}\n\n"#,
            "Closed Unknown None: the server's stream ended before the answer",
        ),
        (
            r#"POST tools/call: json {"id":77,"result":1}"#,
            "Protocol Unknown None: the response contains no answer to the request",
        ),
        (
            "POST tools/call: 202 ",
            "Protocol Unknown None: the server accepted a request without answering it",
        ),
        (
            "POST tools/call: json <html>",
            "Protocol Unknown None: the server sent something that is not a JSON-RPC message",
        ),
        (
            "POST tools/call: 500 oops",
            "Closed Unknown Some(500): the server answered 500 Internal Server Error",
        ),
        ("POST tools/call: 401 {}", "Connect No Some(401): the server requires authentication (401)"),
        (
            r#"POST tools/call: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}"#,
            "Rpc Yes Some(400): the server answered with an error: bad (-32602)",
        ),
        (
            "POST tools/call: [Location: http://localhost:1/] 307 ",
            "Connect No None: could not connect to `http://127.0.0.1`: it redirects to another origin",
        ),
    ] {
        let (fake, connected) = connect(&format!("{LEGACY}\n{rules}")).await;
        let begun = Instant::now();
        let port = format!(":{}", fake.url().port().unwrap());
        assert_eq!(call(&connected).await.replace(&port, ""), expected, "for {rules}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?} for {rules}", begun.elapsed());
    }
}

#[tokio::test]
async fn an_oversized_body_fails() {
    let fake = FakeHttp::start(&format!(
        "{MODERN}\nPOST tools/call: json {{\"id\":$id,\"result\":\"{}\"}}",
        "x".repeat(5_000)
    ))
    .await;
    let endpoint = HttpEndpoint { frame_limit: 4_000, ..endpoint(&fake) };
    let connected = Session::connect(&endpoint, &options()).await.unwrap();
    assert_eq!(call(&connected).await, "Protocol Unknown None: a message is longer than the limit");
}

#[tokio::test]
async fn a_legacy_session_sends_its_id_and_ends_with_delete() {
    let (fake, connected) =
        connect(&format!("{LEGACY}\nPOST tools/call: json {{\"id\":$id,\"result\":1}}")).await;
    assert_eq!(call(&connected).await, "1");
    drop(connected.session);
    connected.task.join().await;
    let received = fake.received();
    let mut keys: Vec<_> = received.iter().map(|received| received.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "DELETE",
            "GET",
            "POST initialize",
            "POST notifications/initialized",
            "POST server/discover",
            "POST tools/call"
        ]
    );
    for received in received
        .iter()
        .filter(|received| !received.key.contains("initialize") || received.key.contains("notif"))
    {
        let head = received.head.to_lowercase();
        let legacy = !received.key.contains("discover");
        assert_eq!(head.contains("mcp-session-id: s1\r\n"), legacy, "{received:?}");
        assert_eq!(head.contains("mcp-protocol-version: 2025-11-25\r\n"), legacy, "{received:?}");
        assert!(!legacy || !head.contains("mcp-method"), "{received:?}");
    }
}

/// Without a session the server has no way to match an answer to a request of its own.
#[tokio::test]
async fn only_a_server_with_a_session_can_send_requests() {
    let stateless = LEGACY.replace("[Mcp-Session-Id: s1] ", "");
    for (script, expected) in [(LEGACY, true), (&stateless, false), (MODERN, false)] {
        let (_fake, connected) = connect(script).await;
        assert_eq!(connected.session.takes_server_requests(), expected, "{script}");
    }
}

#[tokio::test]
async fn calls_share_a_connection_until_the_server_closes_it() {
    let script = r#"
        POST tools/call: json {"id":$id,"result":1}
        POST tools/call: json {"id":$id,"result":2}
        POST tools/call: last {"id":$id,"result":3}
        POST tools/call: json {"id":$id,"result":4}
    "#;
    let (fake, connected) = connect(&format!("{MODERN}{script}")).await;
    for (expected, connections) in [("1", 1), ("2", 1), ("3", 1), ("4", 2), ("4", 2)] {
        assert_eq!((call(&connected).await.as_str(), fake.connections()), (expected, connections));
    }
}

#[tokio::test]
async fn each_runtime_uses_its_own_connections() {
    let (fake, connected) =
        connect(&format!("{MODERN}\nPOST tools/call: json {{\"id\":$id,\"result\":1}}")).await;
    for _ in 0..2 {
        let session = connected.session.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let calling = tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                let request = || session.request(Request::call_tool("t", None));
                (describe(request().await), describe(request().await))
            })
        });
        assert_eq!(calling.await.unwrap(), ("1".to_owned(), "1".to_owned()));
        assert_eq!(call(&connected).await, "1");
    }
    // One of this runtime, and one of each of the others.
    assert_eq!(fake.connections(), 3);
}

#[tokio::test]
async fn a_connection_that_closed_while_idle_is_replaced() {
    let (fake, connected) =
        connect(&format!("{MODERN}\nPOST tools/call: json {{\"id\":$id,\"result\":1}}")).await;
    for connections in 1..=3 {
        assert_eq!((call(&connected).await.as_str(), fake.connections()), ("1", connections));
        fake.close_idle_connections().await;
    }
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let (fake, connected) = connect(&format!("{MODERN}\nPOST tools/call: sse+ : wait\\n\\n")).await;
    tokio::select! {
        outcome = call(&connected) => panic!("{outcome}"),
        () = fake.wait_for_stream() => {}
    }
    fake.wait_for_closed_stream().await;
    assert_eq!(connected.session.unanswered(), 0);
}

#[tokio::test]
async fn a_lost_session_is_renewed_once() {
    let script = r#"
        POST server/discover: 404
        POST initialize: [Mcp-Session-Id: s1] json {"id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        POST initialize: [Mcp-Session-Id: s2] json {"id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        POST notifications/initialized: 202
        POST tools/call: 404
        POST tools/call: json {"id":$id,"result":1}
        POST tools/call: 404
    "#;
    let (fake, mut connected) = connect(script).await;
    assert_eq!(call(&connected).await, "1");
    assert_eq!(connected.news.next().await, Some(News::Renewed));
    let calls: Vec<_> =
        fake.received().into_iter().filter(|received| received.key.contains("tools/call")).collect();
    assert!(calls[1].head.contains("mcp-session-id: s2"), "{calls:?}");
    assert_eq!(
        call(&connected).await,
        "Connect Unknown Some(404): the server has lost the session, and the new one too (404)"
    );
}

#[tokio::test]
async fn modern_requests_carry_routing_headers() {
    let (fake, connected) =
        connect(&format!("{MODERN}\nPOST tools/call: json {{\"id\":$id,\"result\":{{}}}}")).await;
    assert_eq!(connected.session.terms().era, Era::Modern);
    let params = vec![("Region".to_owned(), "日本".to_owned())];
    connected.session.request(Request::call_tool("größe", None).header_params(params)).await.unwrap();
    let head = fake.received().pop().unwrap().head;
    for line in [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        "mcp-name: =?base64?Z3LDtsOfZQ==?=",
        "mcp-param-region: =?base64?5pel5pys?=",
    ] {
        assert!(head.contains(line), "{line} in {head}");
    }
    assert_eq!(fake.keys(), "POST server/discover, POST tools/call");
}

#[tokio::test]
async fn the_get_stream_delivers_notifications() {
    let script =
        format!("{LEGACY}\nGET: sse+ data: {{\"method\":\"notifications/tools/list_changed\"}}\\n\\n");
    let (_fake, mut connected) = connect(&script).await;
    assert_eq!(connected.news.next().await, Some(News::ToolsChanged));
}

#[tokio::test]
async fn errors_unrelated_to_the_era_fail_at_once() {
    for (script, expected) in [
        ("POST server/discover: 401 ", "Connect No Some(401): the server requires authentication (401)"),
        (
            "POST server/discover: 503 ",
            "Closed Unknown Some(503): the server answered 503 Service Unavailable",
        ),
    ] {
        let fake = FakeHttp::start(script).await;
        let failed = Session::connect(&endpoint(&fake), &options()).await.map(|_| Raw::empty_object());
        assert_eq!(describe(failed), expected);
        assert_eq!(fake.received().len(), 1);
    }
    let unreachable = HttpEndpoint::new(
        "http://127.0.0.1:1/".parse().unwrap(),
        HttpClient::new(Duration::from_secs(1)).unwrap(),
    );
    let options = Options { era: EraHint::Only(Era::Legacy), ..options() };
    let failed = Session::connect(&unreachable, &options).await.map(|_| Raw::empty_object());
    assert_eq!(
        describe(failed),
        "Connect No None: could not connect to `http://127.0.0.1:1`: Connection refused (os error 111)"
    );
}

#[tokio::test]
async fn a_header_mismatch_rereads_the_schema_and_retries() {
    let missed = r#"POST tools/call: 400 {"id":$id,"error":{"code":-32020,"message":"a header is missing"}}"#;
    let answered = r#"POST tools/call: json {"id":$id,"result":1}"#;
    let region = r#"{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}"#;
    let refused = "Rpc Yes Some(400): the server answered with an error: a header is missing (-32020)";
    let (once, twice) =
        ("POST tools/call, POST tools/list", "POST tools/call, POST tools/list, POST tools/call");
    for (tool, calls, expected, keys) in [
        (region, vec![missed, answered], "1", twice),
        (region, vec![missed], refused, twice),
        (r#"{"name":"t","inputSchema":{}}"#, vec![missed, answered], refused, once),
        (r#"{"name":"other","inputSchema":{}}"#, vec![missed, answered], refused, once),
    ] {
        let list = format!(r#"POST tools/list: json {{"id":$id,"result":{{"tools":[{tool}]}}}}"#);
        let (fake, mut connected) = connect(&format!("{MODERN}\n{list}\n{}", calls.join("\n"))).await;
        let arguments = Raw::from(serde_json::json!({ "region": "eu" }));
        let outcome = connected.session.request(Request::call_tool("t", Some(&arguments))).await;
        assert_eq!(describe(outcome), expected);
        assert_eq!(fake.keys(), format!("POST server/discover, {keys}"));
        let repeated = fake.received().pop().unwrap().head.contains("mcp-param-region: eu");
        assert_eq!(repeated, keys == twice);
        assert_eq!(connected.news.next().await, Some(News::ToolsChanged));
    }
}

/// A silent stream is abandoned after its idle timeout, long before the deadline.
#[tokio::test]
async fn a_silent_stream_times_out() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    let silent = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    };
    let mut endpoint = HttpEndpoint::new(url, HttpClient::new(Duration::from_secs(5)).unwrap());
    endpoint.read_timeout = Some(Duration::from_millis(100));
    let client = ClientInfo { name: "test".into(), version: "0".into() };
    let era = EraHint::Only(Era::Modern);
    let options = Options { era, ..Options::new(client) };
    let failure = tokio::select! {
        connected = Session::connect(&endpoint, &options) => connected.expect_err("nobody speaks"),
        () = silent => unreachable!("it never ends"),
    };
    assert_eq!(failure.class, Class::Timeout, "{failure}");
    assert!(failure.what.contains("silent"), "{failure}");
}
