//! Accepts clients on each transport. Prints the URL as the first line on stdout, except over stdio, where stdout
//! belongs to the client.

use crate::fixtures::Fixtures;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, io, net::SocketAddr};
use tokio::{
    io::{stdin, stdout},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_tungstenite::tungstenite::{
    handshake::server::{Request, Response},
    http::{HeaderValue, header::SEC_WEBSOCKET_PROTOCOL},
};
use wharf_mcp::serve::{
    Service,
    http::{Body, HttpOptions, HttpService, SseService},
    over_streams, over_websocket,
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Transport {
    Http,
    Stdio,
    Sse,
    WebSocket,
}

pub(crate) struct Server {
    pub(crate) service: Service<Fixtures>,
    pub(crate) transport: Transport,
    pub(crate) listen: SocketAddr,
}

impl Server {
    pub(crate) async fn serve(self) -> io::Result<()> {
        let Server { service, transport, listen } = self;
        match transport {
            Transport::Stdio => over_streams(service, stdin(), stdout()).await,
            Transport::Http => {
                let http = HttpService::new(service, HttpOptions::default());
                accept(listen, "http", "/mcp", move |stream| {
                    let http = http.clone();
                    over_http(stream, move |request| {
                        let http = http.clone();
                        async move { http.respond(request).await }
                    })
                })
                .await
            }
            Transport::Sse => {
                let sse = SseService::new(service, HttpOptions::default(), "/message");
                accept(listen, "http", "/sse", move |stream| {
                    let sse = sse.clone();
                    over_http(stream, move |request| {
                        let sse = sse.clone();
                        async move { sse.respond(request).await }
                    })
                })
                .await
            }
            Transport::WebSocket => {
                accept(listen, "ws", "/mcp", move |stream| websocket(service.clone(), stream)).await
            }
        }
    }
}

/// Prints the URL and serves connections until the process ends.
async fn accept<F>(
    listen: SocketAddr,
    scheme: &str,
    path: &str,
    serve: impl Fn(TcpStream) -> F,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind(listen).await?;
    #[expect(clippy::print_stdout, reason = "the starting process reads the URL from stdout")]
    {
        println!("{scheme}://{}{path}", listener.local_addr()?);
    }
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                connections.spawn(serve(stream));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn over_http<F>(stream: TcpStream, respond: impl Fn(http::Request<Incoming>) -> F + Send)
where
    F: Future<Output = http::Response<Body>> + Send,
{
    let service = service_fn(|request| {
        let response = respond(request);
        async { Ok::<_, Infallible>(response.await) }
    });
    // A client that disconnects is not an error.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

#[expect(clippy::result_large_err, reason = "the library defines the signature of the callback")]
async fn websocket(service: Service<Fixtures>, stream: TcpStream) {
    let confirm_protocol = |request: &Request, mut response: Response| {
        if request.headers().contains_key(SEC_WEBSOCKET_PROTOCOL) {
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
        }
        Ok(response)
    };
    if let Ok(socket) = tokio_tungstenite::accept_hdr_async(stream, confirm_protocol).await {
        over_websocket(service, None, socket).await;
    }
}
