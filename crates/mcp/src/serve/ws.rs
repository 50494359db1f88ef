//! Serving over a WebSocket whose opening handshake somebody else has made.

use super::{Handler, Service, conversation};
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use std::sync::Arc;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, Utf8Bytes},
};

/// How many frames may wait to be looked at.
const QUEUE: usize = 64;

/// Serves one client until it closes its side. `http` is the request that was upgraded.
pub async fn over_websocket<H, S>(
    service: Service<H>,
    http: Option<Arc<::http::request::Parts>>,
    socket: WebSocketStream<S>,
) where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = socket.split();
    let (frames, heard) = mpsc::channel(QUEUE);
    let (conversation, mut written) = conversation::serve(service, http, heard);
    let reading = async move {
        while let Some(Ok(message)) = stream.next().await {
            let frame = match message {
                Message::Text(text) => Bytes::from(text),
                Message::Binary(bytes) => bytes,
                Message::Close(_) => return,
                _ => continue,
            };
            if frames.send(frame).await.is_err() {
                return;
            }
        }
    };
    let writing = async {
        while let Some(message) = written.recv().await {
            let mut text = BytesMut::new();
            message.write(&mut text);
            if let Ok(text) = Utf8Bytes::try_from(text.freeze())
                && sink.send(Message::Text(text)).await.is_err()
            {
                return;
            }
        }
        let _ = sink.close().await;
    };
    let talking = async {
        tokio::join!(reading, conversation);
        std::future::pending::<()>().await;
    };
    // What is said ends last. Where it cannot be said any more nobody listens, whatever else the client sends.
    tokio::select! {
        () = writing => {}
        () = talking => {}
    }
}
