//! Failures of remote servers.

use super::{
    Case, check,
    fake_servers::{FakeServers, Routes, response},
    workspace,
};
use crate::servers::background::{BackgroundServer, free_port};

const EVERYTHING: &str = "@modelcontextprotocol/server-everything";

macro_rules! case {
    ($row:literal, $cause:literal, $transport:literal, $url:literal) => {
        Case { row: $row, cause: $cause, entry: concat!("transport: ", $transport, ", url: '", $url, "'") }
    };
}

pub(super) const CASES: &[Case] = &[
    case!("sse-only", "404", "http", "http://127.0.0.1:{sse}/sse"),
    case!("sse-only", "405", "http", "http://127.0.0.1:{far}/405"),
    case!("sse-only", "406", "http", "http://127.0.0.1:{far}/406"),
    case!("http-only", "400", "sse", "http://127.0.0.1:{http}/mcp"),
    case!("http-only", "405", "sse", "http://127.0.0.1:{far}/405"),
    case!("http-only", "no event stream", "sse", "http://127.0.0.1:{far}/page"),
    case!("no-websocket", "404", "websocket", "ws://127.0.0.1:{far}/404"),
    case!("no-websocket", "200", "websocket", "ws://127.0.0.1:{far}/page"),
    case!("bad-request", "400", "http", "http://127.0.0.1:{far}/400"),
    case!("401", "401", "http", "http://127.0.0.1:{far}/401"),
    case!("401", "401", "sse", "http://127.0.0.1:{far}/401"),
    case!("401", "401", "websocket", "ws://127.0.0.1:{far}/401"),
    case!("403", "403", "http", "http://127.0.0.1:{far}/403"),
    case!("wrong-path", "404", "http", "http://127.0.0.1:{http}/wrong"),
    case!("wrong-path", "404", "sse", "http://127.0.0.1:{sse}/wrong"),
    case!("429", "429", "http", "http://127.0.0.1:{far}/429"),
    case!("500", "500", "http", "http://127.0.0.1:{far}/500"),
    case!("502", "502", "http", "http://127.0.0.1:{far}/502"),
    case!("503", "503", "http", "http://127.0.0.1:{far}/503"),
    case!("session-lost", "and the new one too", "http", "http://127.0.0.1:{forgets}/mcp"),
    case!("elsewhere", "303 See Other", "http", "http://127.0.0.1:{far}/read-there"),
    case!("elsewhere", "another origin", "http", "http://127.0.0.1:{far}/elsewhere"),
    case!("not-mcp", "not a JSON-RPC message", "http", "http://127.0.0.1:{far}/page"),
    case!("connection-refused", "Connection refused", "http", "http://127.0.0.1:{closed}/mcp"),
    case!("connection-refused", "Connection refused", "sse", "http://127.0.0.1:{closed}/sse"),
    case!("connection-refused", "Connection refused", "websocket", "ws://127.0.0.1:{closed}/ws"),
    case!("unknown-host", "nowhere.invalid", "http", "https://nowhere.invalid/mcp"),
    case!("unknown-host", "nowhere.invalid", "websocket", "wss://nowhere.invalid/ws"),
    case!("certificate", "certificate", "http", "https://127.0.0.1:{tls}/mcp"),
    case!("certificate", "certificate", "websocket", "wss://127.0.0.1:{tls}/ws"),
    case!("no-tls-there", "could not connect", "http", "https://127.0.0.1:{far}/400"),
    case!("no-tls-there", "could not connect", "websocket", "wss://127.0.0.1:{far}/400"),
    case!("tls-there", "invalid HTTP version", "http", "http://127.0.0.1:{tls}/mcp"),
    case!("slow-far-start", "in time", "http, connect_timeout: 1", "http://127.0.0.1:{far}/never"),
    case!("slow-far-start", "in time", "websocket, connect_timeout: 1", "ws://127.0.0.1:{far}/never"),
    case!("hung-up", "broke", "http", "http://127.0.0.1:{hangs}/mcp"),
];

#[tokio::test]
async fn remote_failures_have_hints() {
    let mut far = FakeServers::default();
    let (sse, http) = (free_port(), free_port());
    let _servers = tokio::join!(
        BackgroundServer::listening_on(sse, "npx", &["-y", EVERYTHING, "sse"]),
        BackgroundServer::listening_on(http, "npx", &["-y", EVERYTHING, "streamableHttp"]),
    );
    let filled = [
        ("sse", sse),
        ("http", http),
        ("far", far.respond_with(routes()).await),
        ("forgets", far.forget_sessions().await),
        ("hangs", far.close_connections().await),
        ("tls", far.serve_self_signed().await),
        ("closed", free_port()),
    ];
    let filled = filled.map(|(word, port)| (word, port.to_string()));
    check(&workspace(CASES, &filled, &[]), CASES).await;
}

fn routes() -> Routes {
    let statuses = ["400", "401", "403", "405", "406", "429", "500", "502", "503"];
    let refusals = statuses.map(|it| (format!("/{it}"), response(&format!("{it} No"), "", b"")));
    let away = "Location: http://127.0.0.1:9/mcp\r\n";
    let page = "Content-Type: text/html\r\n";
    let others = [
        ("/read-there".to_owned(), response("303 See Other", "Location: /page\r\n", b"")),
        ("/elsewhere".to_owned(), response("307 Temporary Redirect", away, b"")),
        ("/page".to_owned(), response("200 OK", page, b"<!doctype html><p>Welcome to the harbour")),
        ("/never".to_owned(), Vec::new()),
    ];
    refusals.into_iter().chain(others).collect()
}
