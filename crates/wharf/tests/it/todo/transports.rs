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

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn every_transport_has_the_same_todos() {
    let engine = Engine::sqlite();
    let database = engine.address();
    let mut expected = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for transport in ["stdio", "http", "sse", "websocket"] {
            let listening = (transport != "stdio").then(|| Listening::start(&database, transport));
            let todos = match &listening {
                Some(listening) => Todos::reach(transport, &listening.url, era).await,
                None => Todos::meet(&process(&database), era).await,
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
async fn clients_are_told_of_changes_by_others() {
    let engine = Engine::sqlite();
    for (transport, era) in
        [("http", Era::Modern), ("http", Era::Legacy), ("sse", Era::Legacy), ("websocket", Era::Legacy)]
    {
        let listening = Listening::start(&engine.address(), transport);
        let mut hearer = Todos::reach(transport, &listening.url, era).await;
        let writer = Todos::reach(transport, &listening.url, era).await;
        let mut heard = false;
        // A new client may not be subscribed yet, so the test changes something until it receives a notification.
        for _ in 0..100 {
            writer.create("news").await;
            let news = timeout(SOON / 100, async {
                while hearer.news.next().await.is_some_and(|it| it != News::ResourcesChanged) {}
            });
            heard = news.await.is_ok();
            if heard {
                break;
            }
        }
        assert!(heard, "{transport} {era:?}");
        writer.close().await;
        hearer.close().await;
    }
}

#[tokio::test]
async fn clients_are_told_of_changes_by_other_processes() {
    for engine in [Engine::sqlite(), Engine::postgres()] {
        let mut hearer = Todos::meet(&process(&engine.address()), Era::Legacy).await;
        let writer = Todos::start(&engine.address()).await;
        let id = writer.create("news").await["id"].clone();
        hearer.is_told().await;
        writer.call("update_todo", json!({ "id": id, "priority": 1 })).await.expect("it is changed");
        hearer.is_told().await;
        writer.call("delete_todo", json!({ "id": id })).await.expect("it is deleted");
        hearer.is_told().await;
        writer.close().await;
        hearer.close().await;
    }
}

impl Todos {
    /// Waits for the notification that the resources have changed.
    async fn is_told(&mut self) {
        let told = timeout(SOON, async {
            while self.news.next().await.expect("the server lives") != News::ResourcesChanged {}
        });
        told.await.expect("it is told");
    }
}

/// A web page must not be able to use a local server over any transport.
#[test]
fn pages_of_strangers_are_not_let_in() {
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
            stream.set_read_timeout(Some(SOON)).expect("a timeout");
            stream.write_all(format!("{request}{headers}\r\n").as_bytes()).expect("it is sent");
            let mut status = [0; 12];
            stream.read_exact(&mut status).expect("an answer");
            assert_eq!(&status[9..] != b"403", admitted, "{transport} {headers:?}");
        }
    }
}

/// An HTML form of another site cannot send JSON, so other content types are rejected before the body is read.
#[test]
fn a_message_that_is_not_announced_as_json_is_refused() {
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
            stream.set_read_timeout(Some(SOON)).expect("a timeout");
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
