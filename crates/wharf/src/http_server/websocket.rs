//! Upgrades the connection of an HTTP request to a WebSocket.

use super::{ConnectionHandle, RequestBody, UpgradedStream};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Empty};
use std::sync::Arc;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};
use wharf_mcp::serve::http::Body;

/// Maximum size of one message, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Size of a WebSocket's read buffer, in bytes. Every open WebSocket holds this much memory.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// A request that asks for a valid upgrade.
pub(crate) struct WebSocketUpgrade {
    accept: HeaderValue,
}

impl WebSocketUpgrade {
    /// Returns `None` if the request does not ask for a valid upgrade.
    pub(crate) fn of(headers: &HeaderMap) -> Option<WebSocketUpgrade> {
        accept_key(headers).map(|accept| WebSocketUpgrade { accept })
    }

    /// Upgrades the connection and then runs `serve` on it.
    pub(crate) fn start<F>(
        self,
        request: Request<RequestBody>,
        connection_handle: &ConnectionHandle,
        serve: impl FnOnce(WebSocketStream<UpgradedStream>, Arc<Parts>) -> F + Send + 'static,
    ) -> Response<Body>
    where
        F: Future<Output = ()> + Send,
    {
        let wants_protocol = request.headers().contains_key(header::SEC_WEBSOCKET_PROTOCOL);
        let parts = Arc::new(request.into_parts().0);
        connection_handle.upgrade_with(|stream| async move {
            let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(limits())).await;
            serve(socket, parts).await;
        });
        switching(self.accept, wants_protocol)
    }
}

fn limits() -> WebSocketConfig {
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
    config.max_message_size(Some(MAX_MESSAGE_BYTES)).max_frame_size(Some(MAX_MESSAGE_BYTES))
}

fn switching(accept: HeaderValue, wants_protocol: bool) -> Response<Body> {
    let mut response = Response::new(Empty::<Bytes>::new().boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if wants_protocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
    }
    response
}

/// Computes `Sec-WebSocket-Accept`, or returns `None` if the request is not a valid WebSocket upgrade.
fn accept_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let is = |name, wanted: &str| {
        let value = headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
        value.is_some_and(|it| it.split(',').any(|it| it.trim().eq_ignore_ascii_case(wanted)))
    };
    let is_upgrade = is(header::UPGRADE, "websocket") && is(header::CONNECTION, "upgrade");
    let key = headers
        .get(header::SEC_WEBSOCKET_KEY)
        .filter(|_| is_upgrade && is(header::SEC_WEBSOCKET_VERSION, "13"))?;
    derive_accept_key(key.as_bytes()).parse().ok()
}
