//! The server for the official conformance suite on the reference Rust SDK (`rmcp`): the same fixtures as our own server.
//!
//! It serves both eras over streamable HTTP and prints its URL, or serves one client over stdio with `--stdio`.

#![expect(
    deprecated,
    reason = "2026-07-28 deprecates sampling, roots and logging, which the suite still tests"
)]

mod handler;
mod jobs;
mod tools;

use handler::SdkHandler;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rmcp::{
    ServiceExt,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use std::{convert::Infallible, env, error::Error, sync::Arc};
use tokio::{
    io::{stdin, stdout},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
async fn main() -> Result<(), Box<dyn Error>> {
    let handler = SdkHandler::new()?;
    match env::args().nth(1).as_deref() {
        Some("--stdio") => {
            handler.serve((stdin(), stdout())).await?.waiting().await?;
            Ok(())
        }
        _ => serve_http(handler).await,
    }
}

/// Prints the URL and serves connections until the process ends.
async fn serve_http(handler: SdkHandler) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    #[expect(clippy::print_stdout, reason = "the starting process reads the URL from stdout")]
    {
        println!("http://{}/mcp", listener.local_addr()?);
    }
    let config = StreamableHttpServerConfig::default();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                connections.spawn(serve_connection(service.clone(), stream));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(
    service: StreamableHttpService<SdkHandler, LocalSessionManager>,
    stream: TcpStream,
) {
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.handle(request).await) }
    });
    // A client that disconnects is not an error.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}
