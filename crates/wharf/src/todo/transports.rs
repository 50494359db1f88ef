//! Serves an MCP server of this program over stdin and stdout, or over a TCP port.
//!
//! At shutdown it accepts no new connections, and requests in flight have a short time to finish.

use crate::http_server::RequestBody;
use crate::{
    exit::Exit,
    http_server::{ConnectionHandle, ConnectionPlacement, WebSocketUpgrade, accept, guard, serve_http},
    wire_faults::{FaultyStream, WireFaults},
};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use std::{
    future::{pending, ready},
    io,
    sync::Arc,
};
use tokio::net::TcpListener;
use wharf_mcp::serve::{
    Service,
    http::{Body, Guard, HttpOptions, HttpService, SseService},
    over_streams, over_websocket,
};

/// The transport on a TCP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortTransport {
    Http,
    Sse,
    WebSocket,
}

impl PortTransport {
    /// Returns the URL for clients.
    pub(crate) fn url(self, listener: &TcpListener) -> io::Result<String> {
        let (scheme, path) = match self {
            PortTransport::Http => ("http", "/mcp"),
            PortTransport::Sse => ("http", "/sse"),
            PortTransport::WebSocket => ("ws", "/ws"),
        };
        Ok(format!("{scheme}://{}{path}", listener.local_addr()?))
    }
}

/// Serves the parent process until it closes our stdin, or an injected fault ends the connection.
pub(crate) async fn serve_stdio(service: Service, faults: Option<Arc<WireFaults>>) -> Exit {
    let stdout = FaultyStream::new(tokio::io::stdout(), faults.clone());
    let ended = async {
        match &faults {
            Some(faults) => faults.ended().await,
            None => pending().await,
        }
    };
    tokio::select! {
        // A client that disconnects is not an error.
        _ = over_streams(service, tokio::io::stdin(), stdout) => {}
        () = ended => {}
    }
    Exit::Success
}

/// Serves all clients that connect to the port, until `shutdown` completes.
pub(crate) async fn serve_port(
    service: Service,
    transport: PortTransport,
    listener: TcpListener,
    faults: Option<Arc<WireFaults>>,
    shutdown: impl Future<Output = Exit>,
) -> Exit {
    let options = HttpOptions { guard: guard(&listener), ..HttpOptions::default() };
    match transport {
        PortTransport::Http | PortTransport::Sse => {
            let http = HttpService::new(service.clone(), options.clone());
            let sse = SseService::new(service, options, "/messages");
            let respond = move |request: Request<RequestBody>, _: &ConnectionHandle| {
                let (http, sse) = (http.clone(), sse.clone());
                async move {
                    match (transport, request.uri().path()) {
                        (PortTransport::Http, "/mcp") => http.respond(request).await,
                        (PortTransport::Sse, "/sse" | "/messages") => sse.respond(request).await,
                        _ => empty(StatusCode::NOT_FOUND),
                    }
                }
            };
            accept((listener, &ConnectionPlacement::current()), shutdown, move |stream, shutdown_signal| {
                let stream = FaultyStream::new(stream, faults.clone());
                serve_http(stream, shutdown_signal, respond.clone())
            })
            .await
        }
        PortTransport::WebSocket => {
            let guard = options.guard;
            let respond = move |request: Request<RequestBody>, connection_handle: &ConnectionHandle| {
                ready(websocket(service.clone(), &guard, request, connection_handle))
            };
            accept((listener, &ConnectionPlacement::current()), shutdown, move |stream, shutdown_signal| {
                let stream = FaultyStream::new(stream, faults.clone());
                serve_http(stream, shutdown_signal, respond.clone())
            })
            .await
        }
    }
}

fn websocket(
    service: Service,
    guard: &Guard,
    request: Request<RequestBody>,
    connection_handle: &ConnectionHandle,
) -> Response<Body> {
    if guard.admit(request.headers()).is_err() {
        return empty(StatusCode::FORBIDDEN);
    }
    if request.uri().path() != "/ws" {
        return empty(StatusCode::NOT_FOUND);
    }
    match WebSocketUpgrade::of(request.headers()) {
        None => empty(StatusCode::UPGRADE_REQUIRED),
        Some(upgrade) => upgrade.start(request, connection_handle, |socket, parts| async move {
            over_websocket(service, Some(parts), socket).await;
        }),
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::<Bytes>::new().boxed_unsync());
    *response.status_mut() = status;
    response
}
