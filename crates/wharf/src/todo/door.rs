//! How clients of the Todo server come in: over our own stdin and stdout, or over a port.
//!
//! On leaving, nobody new is let in; requests that are being answered have a moment to be.

use super::TodoServer;
use crate::exit::Exit;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::SEC_WEBSOCKET_PROTOCOL};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, io, net::IpAddr, pin::pin, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_tungstenite::tungstenite::handshake::server as ws;
use wharf_mcp::serve::{
    Service,
    http::{Body, Guard, HttpOptions, HttpService, SseService},
    over_streams, over_websocket,
};

/// How long requests under way may take once we are leaving.
const GRACE: Duration = Duration::from_secs(3);

/// How long a client may take to say what it wants.
const HEADERS: Duration = Duration::from_secs(30);

/// How long to wait when no more connections can be taken.
const MOMENT: Duration = Duration::from_millis(100);

/// What is said over a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    Http,
    Sse,
    WebSocket,
}

/// Changes, or rather ends, when we are leaving.
type Leaving = watch::Receiver<()>;

impl Speech {
    /// What a client has to be told to come in.
    pub(crate) fn url(self, listener: &TcpListener) -> io::Result<String> {
        let (scheme, path) = match self {
            Speech::Http => ("http", "/mcp"),
            Speech::Sse => ("http", "/sse"),
            Speech::WebSocket => ("ws", "/ws"),
        };
        Ok(format!("{scheme}://{}{path}", listener.local_addr()?))
    }
}

/// Serves whoever started us, until it closes our stdin.
pub(crate) async fn stdio(service: Service<TodoServer>) -> Exit {
    // A client that breaks off is nothing to report.
    let _ = over_streams(service, tokio::io::stdin(), tokio::io::stdout()).await;
    Exit::Fine
}

/// Serves everybody who comes to the port, until it is time to leave.
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
            let respond = move |request: Request<Incoming>| {
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
            let respond = move |request: Request<Incoming>| {
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

/// On loopback, a page of a stranger must not come in by a name of its own for this machine. Elsewhere the operator has
/// opened the door, and the machine may have any name.
fn guard(listener: &TcpListener) -> Guard {
    let address: Option<IpAddr> = listener.local_addr().ok().map(|it| it.ip());
    let is_open = address.is_some_and(|it| !it.is_loopback());
    Guard { hosts: if is_open { vec!["*".to_owned()] } else { Vec::new() }, ..Guard::default() }
}

async fn accept<F>(
    listener: TcpListener,
    leave: impl Future<Output = Exit>,
    serve: impl Fn(TcpStream, Leaving) -> F,
) -> Exit
where
    F: Future<Output = ()> + Send + 'static,
{
    let (tell, leaving) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut leave = pin!(leave);
    let exit = loop {
        tokio::select! {
            exit = &mut leave => break exit,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Without it every answer would wait for a timer.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(serve(stream, leaving.clone()));
                }
                // Too many are open, or one left before it was let in.
                Err(_) => sleep(MOMENT).await,
            },
            Some(_) = connections.join_next() => {}
        }
    };
    drop((listener, tell));
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
    exit
}

async fn over_http<F>(
    stream: TcpStream,
    mut leaving: Leaving,
    respond: impl Fn(Request<Incoming>) -> F + Send,
) where
    F: Future<Output = Response<Body>> + Send,
{
    let service = service_fn(|request| {
        let response = respond(request);
        async { Ok::<_, Infallible>(response.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A client that breaks off is nothing to report.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = leaving.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
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
        let handshake = timeout(HEADERS, tokio_tungstenite::accept_hdr_async(stream, admit)).await;
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
