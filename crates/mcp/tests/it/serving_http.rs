//! Tests the statuses and headers of our HTTP server, request by request.

use crate::serving::DemoHandler;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use wharf_mcp::serve::{
    Service,
    http::{HttpOptions, HttpService},
};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Sends one request, given as header lines and a body; returns the status, the body and the session id.
async fn send(service: &HttpService, request: &str) -> (u16, String, Option<String>) {
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let mut lines = head.lines().map(str::trim);
    let mut builder = http::Request::builder().method(lines.next().unwrap()).uri("/mcp");
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        builder = builder.header(name, value);
    }
    if builder.headers_ref().is_some_and(|it| !it.contains_key("content-type")) {
        builder = builder.header("content-type", "application/json");
    }
    let body = body.replace("META", META);
    let response = service.respond(builder.body(Full::new(Bytes::from(body))).unwrap()).await;
    let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    // A stream that stays open never completes its body.
    let whole =
        tokio::time::timeout(std::time::Duration::from_millis(200), response.into_body().collect()).await;
    let body = whole.map_or_else(
        |_| "…".to_owned(),
        |body| String::from_utf8_lossy(&body.unwrap().to_bytes()).into_owned(),
    );
    (status, body, session)
}

#[tokio::test]
async fn modern_requests_are_checked() {
    let service = HttpService::new(Service::new(DemoHandler), HttpOptions::default());
    let list = "mcp-protocol-version: 2026-07-28\nmcp-method: tools/list";
    let call = "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call";
    for (request, status, contains) in [
        (format!("POST\n{list}\n\n{{\"id\":1,\"method\":\"tools/list\",\"params\":{{META}}}}"), 200, r#""resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"show""#),
        (format!("POST\n{call}\nmcp-name: =?base64?ZWNobw==?=\n\n{{\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",META}}}}"), 200, "echo"),
        (format!("POST\n{call}\nmcp-name: other\n\n{{\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",META}}}}"), 400, "-32020"),
        (format!("POST\n{call}\n\n{{\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",META}}}}"), 400, "-32020"),
        (format!("POST\n{call}\n\n{{\"id\":1,\"method\":\"tools/list\",\"params\":{{META}}}}"), 400, "-32020"),
        (format!("POST\n{list}\n\n{{\"id\":1,\"method\":\"tools/list\"}}"), 400, "-32602"),
        (
            "POST\nmcp-protocol-version: 2031-01-01\nmcp-method: tools/list\n\n{\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2031-01-01\"}}}".into(),
            400,
            r#"-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25""#,
        ),
        ("POST\nmcp-protocol-version: 2026-07-28\nmcp-method: ping\n\n{\"id\":1,\"method\":\"ping\",\"params\":{META}}".into(), 404, "-32601"),
        ("POST\nmcp-protocol-version: 2026-07-28\nmcp-method: server/discover\n\n{\"id\":1,\"method\":\"server/discover\",\"params\":{META}}".into(), 200, r#""supportedVersions":["2026-07-28","#),
        ("POST\n\n{".into(), 400, "-32700"),
        ("POST\nhost: evil.example\n\n{}".into(), 403, "host `evil.example` is not allowed"),
        ("POST\nhost: evil.example\ncontent-type: text/plain\n\n{}".into(), 403, "host `evil.example` is not allowed"),
        (format!("POST\n{list}\ncontent-type: text/plain\n\n{{\"id\":1,\"method\":\"tools/list\",\"params\":{{META}}}}"), 415, "application/json"),
        (format!("POST\n{list}\ncontent-encoding: gzip\n\n{{\"id\":1,\"method\":\"tools/list\",\"params\":{{META}}}}"), 415, "Content-Encoding"),
        (format!("POST\n{list}\ncontent-type: application/json; charset=utf-8\ncontent-encoding: identity\n\n{{\"id\":1,\"method\":\"tools/list\",\"params\":{{META}}}}"), 200, "resultType"),
        ("POST\norigin: http://evil.example\n\n{}".into(), 403, "origin `http://evil.example` is not allowed"),
        ("PUT".into(), 405, ""),
    ] {
        let (code, body, _) = send(&service, &request).await;
        assert!(code == status && body.contains(contains), "{code} {body}\nfor {request}");
    }
}

#[tokio::test]
async fn legacy_sessions_are_tracked() {
    let service = HttpService::new(
        Service::new(DemoHandler),
        HttpOptions { session_limit: 1, ..HttpOptions::default() },
    );
    let initialize = "POST\n\n{\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}}";
    let (status, body, session) = send(&service, initialize).await;
    assert_eq!(status, 200);
    assert!(body.contains(r#""protocolVersion":"2025-06-18""#), "{body}");
    let session = format!("mcp-session-id: {}", session.unwrap());
    for (request, status) in [
        (format!("POST\n{session}\n\n{{\"method\":\"notifications/initialized\"}}"), 202),
        (format!("POST\n{session}\n\n{{\"id\":2,\"method\":\"tools/list\"}}"), 200),
        (
            format!(
                "POST\n{session}\nmcp-protocol-version: 1999-01-01\n\n{{\"id\":2,\"method\":\"tools/list\"}}"
            ),
            400,
        ),
        ("POST\nmcp-session-id: unknown\n\n{\"id\":2,\"method\":\"tools/list\"}".into(), 404),
        ("POST\n\n{\"id\":2,\"method\":\"tools/list\"}".into(), 400),
        (format!("GET\n{session}"), 200),
        ("GET\nmcp-session-id: unknown".into(), 404),
        ("GET".into(), 405),
        (format!("POST\n{session}\n\n[{{\"id\":2,\"method\":\"tools/list\"}}]"), 400),
        // Only one session is allowed.
        (initialize.to_owned(), 503),
        (format!("DELETE\n{session}"), 204),
        (format!("POST\n{session}\n\n{{\"id\":2,\"method\":\"tools/list\"}}"), 404),
    ] {
        let (code, body, _) = send(&service, &request).await;
        assert_eq!(code, status, "{body}\nfor {request}");
    }
}

#[tokio::test]
async fn batches_are_answered_in_the_one_version_that_has_them() {
    let service = HttpService::new(Service::new(DemoHandler), HttpOptions::default());
    let initialize = "POST\n\n{\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-03-26\",\"capabilities\":{}}}";
    let (_, _, session) = send(&service, initialize).await;
    let session = format!("mcp-session-id: {}", session.unwrap());
    let call = |id: &str, tool: &str| {
        format!(
            r#"{{"id":{id},"method":"tools/call","params":{{"name":"{tool}","_meta":{{"progressToken":7}}}}}}"#
        )
    };
    let initialized = r#"{"method":"notifications/initialized"}"#;
    for (messages, status, contains) in [
        (vec![initialized.to_owned()], 202, vec![]),
        (
            vec![
                initialized.to_owned(),
                call("2", "progress"),
                call("3", "nothing"),
                call("\"4\"", "echo"),
                r#"{"id":5}"#.into(),
            ],
            200,
            vec![
                r#""progressToken":7,"progress":20"#,
                r#""id":2,"result""#,
                r#""id":3,"error":{"code":-32602"#,
                r#""id":"4","result":{"content":[{"type":"text","text":"echo"}]"#,
                r#""id":5,"error":{"code":-32600"#,
            ],
        ),
    ] {
        let (code, body, _) = send(&service, &format!("POST\n{session}\n\n[{}]", messages.join(","))).await;
        assert_eq!(code, status, "{body}");
        for held in contains {
            assert_eq!(body.matches(held).count(), 1, "{held} in {body}");
        }
    }
    let long = vec![initialized; 257].join(",");
    let (code, body, _) = send(&service, &format!("POST\n{session}\n\n[{long}]")).await;
    assert!(code == 400 && body.contains("-32600") && body.contains("at most 256 messages"), "{code} {body}");
}

/// A client that names the event stream first gets one. Its first event is an id to resume from, in the version that
/// has it.
#[tokio::test]
async fn a_client_that_prefers_a_stream_gets_one() {
    let service = HttpService::new(Service::new(DemoHandler), HttpOptions::default());
    let prefers = "accept: text/event-stream, application/json";
    for (version, opening) in [
        ("2025-11-25", "id: 1-0\nretry: 1000\ndata: \n\nid: 1-1\ndata: {"),
        ("2025-06-18", "id: 1-1\ndata: {"),
    ] {
        let params = format!(r#"{{"protocolVersion":"{version}","capabilities":{{}}}}"#);
        let initialize =
            format!("POST\n{prefers}\n\n{{\"id\":1,\"method\":\"initialize\",\"params\":{params}}}");
        let (_, body, session) = send(&service, &initialize).await;
        assert!(body.starts_with('{'), "the handshake is always answered with JSON: {body}");
        let session = format!("mcp-session-id: {}", session.unwrap());
        let list = "{\"id\":2,\"method\":\"tools/list\"}";
        let (_, body, _) = send(&service, &format!("POST\n{session}\n{prefers}\n\n{list}")).await;
        assert!(body.starts_with(opening) && body.ends_with("}\n\n"), "{version}: {body}");
        for accept in
            ["*/*", "application/json, text/event-stream", "text/event-stream;q=0.5, application/json"]
        {
            let (_, body, _) = send(&service, &format!("POST\n{session}\naccept: {accept}\n\n{list}")).await;
            assert!(body.starts_with('{'), "{accept}: {body}");
        }
    }
    let modern = |method: &str| {
        let headers = format!("{prefers}\nmcp-protocol-version: 2026-07-28\nmcp-method: {method}");
        format!("POST\n{headers}\n\n{{\"id\":1,\"method\":\"{method}\",\"params\":{{META}}}}")
    };
    let (status, body, _) = send(&service, &modern("tools/list")).await;
    assert!(status == 200 && body.starts_with("data: {") && body.ends_with("}\n\n"), "{status} {body}");
    // The status of an error is worth more than the stream.
    let (status, body, _) = send(&service, &modern("ping")).await;
    assert!(status == 404 && body.starts_with('{'), "{status} {body}");
}
