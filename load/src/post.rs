//! Minimal HTTP: a server that calls one function, and a client with one connection.

use crate::command_line::CommandLine;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, body::Incoming, client::conn::http1::SendRequest, header, server, service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

pub(crate) const SESSION: &str = "mcp-session-id";

/// A client with one connection to one address.
pub(crate) struct HttpConnection {
    to: Address,
    send: Option<SendRequest<Full<Bytes>>>,
    /// Task that drives the connection.
    work: JoinSet<()>,
}

/// Address to send requests to.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) path: String,
}

/// An HTTP response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: Bytes,
}

impl Address {
    /// Parses `HOST:PORT/PATH`, with or without `http://`.
    pub(crate) fn of(text: &str) -> Address {
        let text = text.strip_prefix("http://").unwrap_or(text);
        let (host, path) = text.split_at(text.find('/').unwrap_or(text.len()));
        let path = if path.is_empty() { "/" } else { path };
        Address { host: host.to_owned(), path: path.to_owned() }
    }
}

impl HttpConnection {
    pub(crate) fn to(address: &Address) -> HttpConnection {
        HttpConnection { to: address.clone(), send: None, work: JoinSet::new() }
    }

    /// Posts a message. Reconnects if the server has closed the connection.
    pub(crate) async fn post(
        &mut self,
        headers: &[(&str, impl AsRef<str>)],
        body: Bytes,
    ) -> Result<Answer, String> {
        let mut send = match self.send.take() {
            Some(send) if !send.is_closed() => send,
            _ => self.dial().await?,
        };
        send.ready().await.map_err(|it| it.to_string())?;
        let mut request = Request::post(&self.to.path)
            .header(header::HOST, &self.to.host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, value.as_ref());
        }
        let request = request.body(Full::new(body)).map_err(|it| it.to_string())?;
        let response = send.send_request(request).await.map_err(|it| it.to_string())?;
        let status = response.status().as_u16();
        let session = response.headers().get(SESSION).and_then(|it| it.to_str().ok()).map(str::to_owned);
        let body = response.into_body().collect().await.map_err(|it| it.to_string())?.to_bytes();
        self.send = Some(send);
        Ok(Answer { status, session, body })
    }

    async fn dial(&mut self) -> Result<SendRequest<Full<Bytes>>, String> {
        let stream = TcpStream::connect(&self.to.host).await.map_err(|it| it.to_string())?;
        let _ = stream.set_nodelay(true);
        let (send, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|it| it.to_string())?;
        self.work.abort_all();
        self.work.spawn(async { _ = connection.await });
        Ok(send)
    }
}

/// Listens on the configured address and prints the URL on stdout.
#[expect(clippy::print_stdout, reason = "the starting process reads the URL from stdout")]
pub(crate) async fn listen(command_line: &CommandLine) -> Result<TcpListener, String> {
    let address = command_line.text("listen").unwrap_or("127.0.0.1:0");
    let listener = TcpListener::bind(address).await.map_err(|it| format!("{address}: {it}"))?;
    println!("http://{}/mcp", listener.local_addr().map_err(|it| it.to_string())?);
    Ok(listener)
}

/// Responds to every request with one function.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    respond: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) -> Result<(), String>
where
    F: Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.map_err(|it| it.to_string())?;
        let _ = stream.set_nodelay(true);
        let service = service_fn(respond.clone());
        connections.spawn(async move {
            let _ = server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

pub(crate) fn json(status: u16, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    headers.insert(SESSION, header::HeaderValue::from_static("one"));
    response
}
