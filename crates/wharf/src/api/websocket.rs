//! MCP over WebSocket: upgrades the connection of a request.

use super::problem::Problem;
use crate::{
    gateway::Gateway,
    http_server::{ConnectionHandle, websocket_limits},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{handshake::derive_accept_key, protocol::Role},
};
use wharf_mcp::serve::{Service, http::Body, over_websocket};

/// `Retry-After` when too many WebSockets are open.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Upgrades a connection to a WebSocket, if the limit of open streams allows it.
pub(super) fn upgrade(
    mut request: Request<Incoming>,
    service: Service<Gateway>,
    permits: &Arc<Semaphore>,
) -> Result<Response<Body>, Problem> {
    let Some(accept) = accept_key(request.headers()) else {
        let problem =
            Problem::new(StatusCode::UPGRADE_REQUIRED, "this path accepts WebSocket connections only");
        return Err(problem.hint("MCP over HTTP is at `/mcp`"));
    };
    let Some(connection_handle) = request.extensions().get::<ConnectionHandle>().cloned() else {
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the connection cannot be upgraded"));
    };
    let full = |_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many open WebSockets")
            .hint("close one, try again later, or raise `max_streams` in [server] of wharf.toml")
            .retry_after(RETRY_AFTER)
    };
    let permit = permits.clone().try_acquire_owned().map_err(full)?;
    let wants_protocol = request.headers().contains_key(header::SEC_WEBSOCKET_PROTOCOL);
    let upgraded = hyper::upgrade::on(&mut request);
    let parts = Arc::new(request.into_parts().0);
    connection_handle.upgrade_with(async move {
        let _permit = permit;
        let Ok(upgraded) = upgraded.await else { return };
        let stream = TokioIo::new(upgraded);
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(websocket_limits())).await;
        over_websocket(service, Some(parts), socket).await;
    });
    Ok(switching(accept, wants_protocol))
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
