//! Remote test servers that fail in various ways. Most send fixed bytes for every request, or nothing.

use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

/// Servers on their own ports. They stop on drop.
#[derive(Default)]
pub(crate) struct FakeServers(JoinSet<()>);

/// Responses by path prefix. An empty response means that the server never responds.
pub(crate) type Routes = Vec<(String, Vec<u8>)>;

impl FakeServers {
    /// Responds by these routes, else with 404.
    pub(crate) async fn respond_with(&mut self, routes: Routes) -> u16 {
        let routes = Arc::new(routes);
        self.serve(move |stream| answer(stream, routes.clone())).await
    }

    /// Responds by these routes after a delay.
    pub(crate) async fn respond_after(&mut self, wait: Duration, routes: Routes) -> u16 {
        let routes = Arc::new(routes);
        self.serve(move |stream| {
            let routes = routes.clone();
            async move {
                time::sleep(wait).await;
                answer(stream, routes).await
            }
        })
        .await
    }

    /// Accepts every `initialize` and rejects the session afterwards.
    pub(crate) async fn forget_sessions(&mut self) -> u16 {
        self.serve(|mut stream| async move {
            let mut request = vec![0; 64 << 10];
            let count = stream.read(&mut request).await?;
            let request = String::from_utf8_lossy(&request[..count]).to_lowercase();
            let answer = match () {
                () if request.contains("notifications/initialized") => response("202 Accepted", "", b""),
                () if request.contains("mcp-session-id:") => response("404 Not Found", "", b""),
                () if request.contains("\"initialize\"") => initialized(&request),
                () => response("400 Bad Request", "", b""),
            };
            stream.write_all(&answer).await?;
            stream.shutdown().await
        })
        .await
    }

    /// Closes every connection at once.
    pub(crate) async fn close_connections(&mut self) -> u16 {
        self.serve(|stream| async {
            drop(stream);
            Ok(())
        })
        .await
    }

    /// Speaks TLS with a self-signed certificate.
    pub(crate) async fn serve_self_signed(&mut self) -> u16 {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|it| it.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key));
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("a configuration")));
        self.serve(move |stream| {
            let acceptor = acceptor.clone();
            async move { acceptor.accept(stream).await.map(drop) }
        })
        .await
    }

    async fn serve<F>(&mut self, serve: impl Fn(TcpStream) -> F + Send + 'static) -> u16
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        self.0.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // The result is ignored, because the client may have disconnected.
                connections.spawn(serve(stream));
            }
        });
        port
    }
}

async fn answer(mut stream: TcpStream, routes: Arc<Routes>) -> io::Result<()> {
    let mut request = vec![0; 64 << 10];
    let count = stream.read(&mut request).await?;
    let line = String::from_utf8_lossy(&request[..count]).into_owned();
    let path = line.split(' ').nth(1).unwrap_or_default();
    let known = routes.iter().find(|(route, _)| path.starts_with(route.as_str()));
    match known {
        Some((_, silence)) if silence.is_empty() => std::future::pending().await,
        Some((_, answer)) => stream.write_all(answer).await?,
        None => stream.write_all(&response("404 Not Found", "", b"{}")).await?,
    }
    stream.shutdown().await?;
    // Closing with unread data would reset the connection before the response arrives.
    while stream.read(&mut request).await? > 0 {}
    Ok(())
}

/// Builds the response to `initialize`, with a session id.
fn initialized(request: &str) -> Vec<u8> {
    let id = request.split("\"id\":").nth(1).and_then(|it| it.split([',', '}']).next()).unwrap_or("1");
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let headers = "Content-Type: application/json\r\nMcp-Session-Id: once\r\n";
    response("200 OK", headers, body.as_bytes())
}

/// Builds a response with this status, these headers and this body.
pub(crate) fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

pub(crate) fn json(body: &str) -> Vec<u8> {
    response("200 OK", "Content-Type: application/json\r\n", body.as_bytes())
}
