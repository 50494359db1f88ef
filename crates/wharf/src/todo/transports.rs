//! Serves the Todo server over stdin and stdout, or over a TCP port.
//!
//! At shutdown it accepts no new connections, and requests in flight have a short time to finish.

use super::TodoServer;
use crate::{
    exit::Exit,
    http_server::{
        ConnectionHandle, HEADER_READ_TIMEOUT, ShutdownSignal, accept, guard, serve_http, websocket_limits,
    },
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::SEC_WEBSOCKET_PROTOCOL};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use std::io;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{accept_hdr_async_with_config, tungstenite::handshake::server as ws};
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

/// Serves the parent process until it closes our stdin.
pub(crate) async fn serve_stdio(service: Service<TodoServer>) -> Exit {
    // A client that disconnects is not an error.
    let _ = over_streams(service, tokio::io::stdin(), tokio::io::stdout()).await;
    Exit::Success
}

/// Serves all clients that connect to the port, until `shutdown` completes.
pub(crate) async fn serve_port(
    service: Service<TodoServer>,
    transport: PortTransport,
    listener: TcpListener,
    shutdown: impl Future<Output = Exit>,
) -> Exit {
    let options = HttpOptions { guard: guard(&listener), ..HttpOptions::default() };
    match transport {
        PortTransport::Http | PortTransport::Sse => {
            let http = HttpService::new(service.clone(), options.clone());
            let sse = SseService::new(service, options, "/messages");
            let respond = move |request: Request<Incoming>, _: &ConnectionHandle| {
                let (http, sse) = (http.clone(), sse.clone());
                async move {
                    match (transport, request.uri().path()) {
                        (PortTransport::Http, "/mcp") => http.respond(request).await,
                        (PortTransport::Sse, "/sse" | "/messages") => sse.respond(request).await,
                        _ => not_found(),
                    }
                }
            };
            accept(listener, shutdown, move |stream, shutdown_signal| {
                serve_http(stream, shutdown_signal, respond.clone())
            })
            .await
        }
        PortTransport::WebSocket => {
            let guard = options.guard;
            accept(listener, shutdown, move |stream, shutdown_signal| {
                websocket(service.clone(), guard.clone(), stream, shutdown_signal)
            })
            .await
        }
    }
}

#[expect(clippy::result_large_err, reason = "the library defines the type of the callback")]
async fn websocket(
    service: Service<TodoServer>,
    guard: Guard,
    stream: TcpStream,
    mut shutdown_signal: ShutdownSignal,
) {
    let admit = |request: &ws::Request, mut response: ws::Response| {
        if let Err(refused) = guard.admit(request.headers()) {
            let mut refusal = ws::ErrorResponse::new(Some(refused));
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            return Err(refusal);
        }
        if request.headers().contains_key(SEC_WEBSOCKET_PROTOCOL) {
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
        }
        Ok(response)
    };
    let serve = async {
        let handshake = timeout(
            HEADER_READ_TIMEOUT,
            accept_hdr_async_with_config(stream, admit, Some(websocket_limits())),
        )
        .await;
        if let Ok(Ok(socket)) = handshake {
            over_websocket(service, None, socket).await;
        }
    };
    tokio::select! {
        () = serve => {}
        _ = shutdown_signal.changed() => {}
    }
}

fn not_found() -> Response<Body> {
    let mut response = Response::new(Empty::<Bytes>::new().boxed_unsync());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
