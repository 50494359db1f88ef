//! Serves one client over a WebSocket whose opening handshake the embedding server has completed.

use super::{Handler, Service, connection};
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

/// Maximum number of received frames waiting to be processed.
const MAX_QUEUED_FRAMES: usize = 64;

/// Serves one client until it closes its side, then writes the remaining responses. `http` is the upgraded request.
pub async fn over_websocket<H, S>(
    service: Service<H>,
    http: Option<Arc<::http::request::Parts>>,
    socket: WebSocketStream<S>,
) where
    H: Handler,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = socket.split();
    let (frames, received) = mpsc::channel(MAX_QUEUED_FRAMES);
    let (connection, mut written) = connection::serve(service, http, received);
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
    let serving = async {
        tokio::join!(reading, connection);
        std::future::pending::<()>().await;
    };
    // The writer ends last in the normal case. If writing fails earlier, stop reading too: the client gets no
    // responses.
    tokio::select! {
        () = writing => {}
        () = serving => {}
    }
}
