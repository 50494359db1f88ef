//! Tests the four transports in both eras, change notifications, rejected requests, and the shutdown.

use super::{
    engines::Engine,
    server::{Listening, Todos, process},
};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};
use tokio::time::timeout;
use wharf_mcp::{News, session::Era};

const NEWS_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn every_transport_has_the_same_todos() {
    let engine = Engine::sqlite();
    let database = engine.address();
    let mut expected = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for transport in ["stdio", "http", "sse", "websocket"] {
            let listening = (transport != "stdio").then(|| Listening::start(&database, transport));
            let todos = match &listening {
                Some(listening) => Todos::connect_url(transport, &listening.url, era).await,
                None => Todos::connect(&process(&database), era).await,
            };
            let title = format!("over {transport}, {era:?}");
            todos.create(&title).await;
            expected.push(title);
            assert_eq!(todos.titles("list_todos", json!({})).await, expected);
            todos.close().await;
            if let Some(listening) = listening {
                assert_eq!(listening.terminate(), Some(143), "{transport}");
            }
        }
    }
}

#[tokio::test]
async fn clients_are_notified_of_changes_by_other_clients() {
    let engine = Engine::sqlite();
    for (transport, era) in
        [("http", Era::Modern), ("http", Era::Legacy), ("sse", Era::Legacy), ("websocket", Era::Legacy)]
    {
        let listening = Listening::start(&engine.address(), transport);
        let mut listener = Todos::connect_url(transport, &listening.url, era).await;
        let writer = Todos::connect_url(transport, &listening.url, era).await;
        let mut heard = false;
        // A new client may not be subscribed yet, so the test changes something until it receives a notification.
        for _ in 0..100 {
            writer.create("news").await;
            let news = timeout(NEWS_TIMEOUT / 100, async {
                while listener.news.next().await.is_some_and(|it| it != News::ResourcesChanged) {}
            });
            heard = news.await.is_ok();
            if heard {
                break;
            }
        }
        assert!(heard, "{transport} {era:?}");
        writer.close().await;
        listener.close().await;
    }
}

#[tokio::test]
async fn clients_are_notified_of_changes_by_other_processes() {
    for engine in [Engine::sqlite(), Engine::postgres()] {
        let mut listener = Todos::connect(&process(&engine.address()), Era::Legacy).await;
        let writer = Todos::start(&engine.address()).await;
        let id = writer.create("news").await["id"].clone();
        listener.wait_for_resources_changed().await;
        writer.call("update_todo", json!({ "id": id, "priority": 1 })).await.expect("it is changed");
        listener.wait_for_resources_changed().await;
        writer.call("delete_todo", json!({ "id": id })).await.expect("it is deleted");
        listener.wait_for_resources_changed().await;
        writer.close().await;
        listener.close().await;
    }
}

impl Todos {
    /// Waits for the notification that the resources have changed.
    async fn wait_for_resources_changed(&mut self) {
        let notified = timeout(NEWS_TIMEOUT, async {
            while self.news.next().await.expect("the server lives") != News::ResourcesChanged {}
        });
        notified.await.expect("a notification");
    }
}

/// A web page must not be able to use a local server over any transport.
#[test]
fn foreign_hosts_and_origins_are_rejected() {
    let engine = Engine::sqlite();
    for (transport, request) in [
        ("http", "POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n"),
        ("sse", "GET /sse HTTP/1.1\r\n"),
        (
            "websocket",
            "GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        ),
    ] {
        let listening = Listening::start(&engine.address(), transport);
        let address = listening.url.split('/').nth(2).expect("an address").to_owned();
        for (headers, admitted) in [
            (format!("Host: {address}\r\n"), true),
            (format!("Host: {address}\r\nOrigin: http://localhost:3000\r\n"), true),
            (format!("Host: {address}\r\nOrigin: https://evil.example\r\n"), false),
            ("Host: evil.example\r\n".to_owned(), false),
        ] {
            let mut stream = TcpStream::connect(&address).expect("a connection");
            stream.set_read_timeout(Some(NEWS_TIMEOUT)).expect("a timeout");
            stream.write_all(format!("{request}{headers}\r\n").as_bytes()).expect("it is sent");
            let mut status = [0; 12];
            stream.read_exact(&mut status).expect("an answer");
            assert_eq!(&status[9..] != b"403", admitted, "{transport} {headers:?}");
        }
    }
}

/// An HTML form of another site cannot send JSON, so other content types are rejected before the body is read.
#[test]
fn message_without_json_content_type_is_rejected() {
    let engine = Engine::sqlite();
    for (transport, path) in [("http", "/mcp"), ("sse", "/messages?sessionId=x")] {
        let listening = Listening::start(&engine.address(), transport);
        let address = listening.url.split('/').nth(2).expect("an address").to_owned();
        for (headers, refused) in [
            ("Content-Type: text/plain\r\n", true),
            ("Content-Type: application/x-www-form-urlencoded\r\n", true),
            ("", true),
            ("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", true),
            ("Content-Type: application/json; charset=utf-8\r\n", false),
        ] {
            let mut stream = TcpStream::connect(&address).expect("a connection");
            stream.set_read_timeout(Some(NEWS_TIMEOUT)).expect("a timeout");
            // For rejected requests, sends only the head, because the response must not wait for the body.
            let (length, body) = if refused { (100, "") } else { (2, "{}") };
            let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n");
            stream.write_all(format!("{head}{headers}\r\n{body}").as_bytes()).expect("it is sent");
            let mut status = [0; 12];
            stream.read_exact(&mut status).expect("an answer");
            assert_eq!(&status[9..] == b"415", refused, "{transport} {headers:?}");
        }
    }
}
