//! Serves one client over a WebSocket whose opening handshake the embedding server has completed.

use super::{Service, connection};
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use std::sync::{Arc, OnceLock};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

/// Maximum number of received frames waiting to be processed.
const MAX_QUEUED_FRAMES: usize = 64;

/// Serves one client until it closes its side, then writes the remaining responses. `http` is the upgraded request.
pub async fn over_websocket<S>(
    service: impl Into<Service>,
    http: Option<Arc<::http::request::Parts>>,
    socket: WebSocketStream<S>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = socket.split();
    let (frames, received) = mpsc::channel(MAX_QUEUED_FRAMES);
    let (connection, mut written) = connection::serve(service.into(), http, received);
    let close = OnceLock::new();
    let reading = async {
        // Dropped at the end, which tells the connection that the client sends no more.
        let frames = frames;
        while let Some(message) = stream.next().await {
            let frame = match message {
                Ok(Message::Text(text)) => Bytes::from(text),
                // Some clients send JSON in binary messages.
                Ok(Message::Binary(bytes)) => bytes,
                Ok(Message::Close(_)) => return,
                Ok(_) => continue,
                Err(error) => {
                    close_frame(&error).into_iter().for_each(|it| drop(close.set(it)));
                    return;
                }
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
                // The client has closed the connection, and may wait for our close frame.
                break;
            }
        }
        if let Some(close) = close.get() {
            let _ = sink.send(Message::Close(Some(close.clone()))).await;
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

/// Returns the close frame that tells the client which rule it broke, or `None` if the connection is lost.
fn close_frame(error: &Error) -> Option<CloseFrame> {
    let (code, reason) = match error {
        Error::Capacity(_) => (CloseCode::Size, "the message is too large"),
        Error::Utf8(_) => (CloseCode::Invalid, "the text is not UTF-8"),
        Error::Protocol(_) => (CloseCode::Protocol, "the frame violates the WebSocket protocol"),
        _ => return None,
    };
    Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
}
