//! MCP over WebSocket: upgrades the connection of a request.

use super::problem::Problem;
use crate::http_server::RequestBody;
use crate::{
    gateway::Gateway,
    http_server::{ConnectionHandle, WebSocketUpgrade},
};
use http::{Request, Response, StatusCode};
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use wharf_mcp::serve::{Service, http::Body, over_websocket};

/// `Retry-After` when too many WebSockets are open.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Upgrades a connection to a WebSocket, if the limit of open streams allows it.
pub(super) fn upgrade(
    request: Request<RequestBody>,
    service: Service<Gateway>,
    permits: &Arc<Semaphore>,
) -> Result<Response<Body>, Problem> {
    let Some(upgrade) = WebSocketUpgrade::of(request.headers()) else {
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
    Ok(upgrade.start(request, &connection_handle, |socket, parts| async move {
        let _permit = permit;
        over_websocket(service, Some(parts), socket).await;
    }))
}
