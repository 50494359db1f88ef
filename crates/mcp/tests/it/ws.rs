//! Tests the WebSocket client against a scripted server.

use crate::{eras::options, fake::INITIALIZED};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::{
    Message,
    handshake::server::{Request as Opening, Response},
};
use wharf_mcp::{Request, Session, ws::WsEndpoint};

/// Serves until the client has disconnected; answers a call with `answer`.
async fn serve(listener: TcpListener, echo: bool, answer: fn(u64) -> Message) {
    while let Ok((stream, _)) = listener.accept().await {
        #[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
        let callback = |_: &Opening, mut response: Response| {
            if echo {
                response.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
            }
            Ok(response)
        };
        let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, callback).await else {
            continue;
        };
        while let Some(Ok(message)) = socket.next().await {
            let Ok(text) = message.into_text() else { continue };
            let Ok(message) = serde_json::from_str::<serde_json::Value>(&text) else { continue };
            let id = message["id"].as_u64().unwrap_or_default();
            let answer = match message["method"].as_str() {
                Some("initialize") => {
                    let result = INITIALIZED.split_once("result ").unwrap().1;
                    Message::text(format!(r#"{{"id":{id},"result":{result}}}"#))
                }
                Some("tools/call") => answer(id),
                Some("server/discover") => {
                    Message::text(format!(r#"{{"id":{id},"error":{{"code":-32601}}}}"#))
                }
                _ => continue,
            };
            let _ = socket.send(answer).await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the fake ends with the test's runtime")]
async fn call(echo: bool, answer: fn(u64) -> Message) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(serve(listener, echo, answer));
    let endpoint = WsEndpoint { frame_limit: 10_000, ..WsEndpoint::new(url) };
    let connected = Session::connect(&endpoint, &options()).await.unwrap();
    match connected.session.request(Request::call_tool("t", None)).await {
        Ok(result) => result.as_str().to_owned(),
        Err(failure) => format!("{:?} {:?}: {failure}", failure.class, failure.sent),
    }
}

#[tokio::test]
async fn each_frame_is_one_message() {
    for echo in [true, false] {
        assert_eq!(call(echo, |id| Message::text(format!(r#"{{"id":{id},"result":1}}"#))).await, "1");
    }
    assert_eq!(call(true, |id| Message::binary(format!(r#"{{"id":{id},"result":1}}"#))).await, "1");
    assert_eq!(
        call(true, |_| Message::text("x".repeat(20_000))).await,
        "Protocol Unknown: a message is longer than the limit"
    );
    assert_eq!(
        call(true, |_| Message::Close(None)).await,
        "Closed Unknown: the server closed the connection"
    );
}

#[tokio::test]
async fn a_failed_connection_names_the_address() {
    let failure =
        Session::connect(&WsEndpoint::new("ws://127.0.0.1:1/".parse().unwrap()), &options()).await.err();
    let error = failure.unwrap().to_string();
    assert!(error.starts_with("could not connect to `ws://127.0.0.1:1"), "{error}");
}
