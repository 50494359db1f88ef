//! Serves the Todo server over stdin and stdout, or over a TCP port.
//!
//! At shutdown it accepts no new connections, and requests in flight have a short time to finish.

use super::TodoServer;
use crate::{
    door::{Afterwards, HEADERS, Leaving, accept, bounded_socket, guard, over_http},
    exit::Exit,
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
pub(crate) enum Speech {
    Http,
    Sse,
    WebSocket,
}

impl Speech {
    /// Returns the URL for clients.
    pub(crate) fn url(self, listener: &TcpListener) -> io::Result<String> {
        let (scheme, path) = match self {
            Speech::Http => ("http", "/mcp"),
            Speech::Sse => ("http", "/sse"),
            Speech::WebSocket => ("ws", "/ws"),
        };
        Ok(format!("{scheme}://{}{path}", listener.local_addr()?))
    }
}

/// Serves the parent process until it closes our stdin.
pub(crate) async fn stdio(service: Service<TodoServer>) -> Exit {
    // A client that disconnects is not an error.
    let _ = over_streams(service, tokio::io::stdin(), tokio::io::stdout()).await;
    Exit::Fine
}

/// Serves all clients that connect to the port, until `leave` completes.
pub(crate) async fn port(
    service: Service<TodoServer>,
    speech: Speech,
    listener: TcpListener,
    leave: impl Future<Output = Exit>,
) -> Exit {
    let options = HttpOptions { guard: guard(&listener), ..HttpOptions::default() };
    match speech {
        Speech::Http => {
            let http = HttpService::new(service, options);
            let respond = move |request: Request<Incoming>, _: &Afterwards| {
                let http = http.clone();
                async move {
                    match request.uri().path() {
                        "/mcp" => http.respond(request).await,
                        _ => not_found(),
                    }
                }
            };
            accept(listener, leave, move |stream, leaving| over_http(stream, leaving, respond.clone())).await
        }
        Speech::Sse => {
            let sse = SseService::new(service, options, "/messages");
            let respond = move |request: Request<Incoming>, _: &Afterwards| {
                let sse = sse.clone();
                async move {
                    match request.uri().path() {
                        "/sse" | "/messages" => sse.respond(request).await,
                        _ => not_found(),
                    }
                }
            };
            accept(listener, leave, move |stream, leaving| over_http(stream, leaving, respond.clone())).await
        }
        Speech::WebSocket => {
            let guard = options.guard;
            accept(listener, leave, move |stream, leaving| {
                websocket(service.clone(), guard.clone(), stream, leaving)
            })
            .await
        }
    }
}

#[expect(clippy::result_large_err, reason = "the shape of the callback is the library's")]
async fn websocket(service: Service<TodoServer>, guard: Guard, stream: TcpStream, mut leaving: Leaving) {
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
        let handshake =
            timeout(HEADERS, accept_hdr_async_with_config(stream, admit, Some(bounded_socket()))).await;
        if let Ok(Ok(socket)) = handshake {
            over_websocket(service, None, socket).await;
        }
    };
    tokio::select! {
        () = serve => {}
        _ = leaving.changed() => {}
    }
}

fn not_found() -> Response<Body> {
    let mut response = Response::new(Empty::<Bytes>::new().boxed_unsync());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
