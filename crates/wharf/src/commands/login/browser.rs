//! Signs in through a browser: prints the URL to open, and listens on loopback for the redirect from the
//! authorization server. The URL comes from a server, so wharf shows it and never opens it.

use crate::{content::printable, output::Output};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time,
};
use url::Url;
use wharf_mcp::oauth::{Browser, Visit};

/// Timeout for the user to sign in.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout for the browser to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the request line and headers, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

const PAGE: &str = "<!doctype html><meta charset=utf-8><title>wharf</title><p>You can close this page and go back to the terminal.";

/// A listener on loopback that receives the redirect.
pub(super) struct LoopbackListener {
    listener: Arc<TcpListener>,
    output: Output,
    port: u16,
}

impl LoopbackListener {
    pub(super) async fn open(output: Output) -> io::Result<LoopbackListener> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(LoopbackListener { listener: Arc::new(listener), output, port })
    }
}

impl Browser for LoopbackListener {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    fn visit(&self, page: Url) -> Visit {
        self.output.print_error(&format!(
            "open this URL in your browser, then return to this terminal:\n\n  {}\n\n",
            printable(page.as_str())
        ));
        let (listener, origin) = (self.listener.clone(), self.redirect_uri());
        Box::pin(async move {
            time::timeout(SIGN_IN_TIMEOUT, wait_for_redirect(&listener, &origin))
                .await
                .unwrap_or_else(|_| Err("timed out waiting for the browser".to_owned()))
        })
    }
}

/// Waits for the redirect to `/callback`. Rejects other requests.
async fn wait_for_redirect(listener: &TcpListener, origin: &str) -> Result<Url, String> {
    loop {
        let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        if let Ok(Some(url)) = time::timeout(REQUEST_TIMEOUT, handle_request(stream, origin)).await {
            return Ok(url);
        }
    }
}

async fn handle_request(mut stream: TcpStream, origin: &str) -> Option<Url> {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        let mut chunk = [0; 2048];
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(&chunk[..count]);
        if head.len() > MAX_HEAD_BYTES {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse(origin).ok()?.join(target).ok().filter(|it| it.path() == "/callback");
    let (status, body) = if url.is_some() { ("200 OK", PAGE) } else { ("404 Not Found", "") };
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    url
}
