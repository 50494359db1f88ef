//! Starts an HTTP server as a local process on a free port, connects to it, and stops it when the link closes.

use crate::{
    Disconnect, Failure, Inbound, Link, Opener, Opening,
    http::{self, HttpClient, HttpEndpoint},
    sse::{self, SseEndpoint},
    stdio::Command,
};
use std::{ffi::OsString, io, net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time,
};
use url::Url;

/// Placeholder for the port in arguments and environment variables.
pub const PORT: &str = "{port}";

/// Interval between attempts to connect to the port.
const CONNECT_INTERVAL: Duration = Duration::from_millis(50);

/// Time limit for the process to stop, including signals and their grace periods.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Transport of a server that runs as a local process and listens on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalTransport {
    /// The HTTP+SSE transport of 2024-11-05.
    Sse,
    /// Streamable HTTP.
    Http,
}

/// Command and endpoint of a server that runs as a local process and listens on a port.
#[derive(Clone, Debug)]
pub struct LocalServer {
    /// Command that starts the server. `{port}` in arguments and variable values is replaced by the port, which is
    /// also set as `PORT` unless the command sets that variable itself.
    pub command: Command,
    /// Transport of the server.
    pub transport: LocalTransport,
    /// Path of the endpoint.
    pub path: String,
    /// Connection pool, shared with other endpoints.
    pub client: HttpClient,
}

impl LocalServer {
    async fn start(&self) -> Result<Link, Failure> {
        let port =
            free_port().await.map_err(|error| Failure::connect(format!("there is no free port: {error}")))?;
        let mut process = self.with_port(port).open().await?;
        let (url, client) = (self.url(port)?, self.client.clone());
        wait_for_port(&mut process, port).await?;
        match self.transport {
            LocalTransport::Http => Ok(http::start(HttpEndpoint::new(url, client), |link_io| {
                let inbound = link_io.context.inbound.clone();
                run_with(process, inbound, http::run(link_io))
            })),
            LocalTransport::Sse => {
                let (stream, post_url) = SseEndpoint::new(url, client).connect().await?;
                Ok(Link::start(false, |link_io| {
                    let inbound = link_io.inbound.clone();
                    run_with(process, inbound, sse::run(stream, post_url, link_io))
                }))
            }
        }
    }

    /// Returns the command with this port filled in.
    fn with_port(&self, port: u16) -> Command {
        let port = port.to_string();
        let fill = |text: &OsString| match text.to_str() {
            Some(text) if text.contains(PORT) => text.replace(PORT, &port).into(),
            _ => text.clone(),
        };
        let mut command = self.command.clone();
        command.args = command.args.iter().map(fill).collect();
        command.env = command.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        if !command.env.iter().any(|(name, _)| name == "PORT") {
            command.env.push(("PORT".into(), port.into()));
        }
        command
    }

    fn url(&self, port: u16) -> Result<Url, Failure> {
        let url = format!("http://127.0.0.1:{port}/{}", self.path.trim_start_matches('/'));
        url.parse().map_err(|_| Failure::connect("the path of the endpoint is invalid"))
    }
}

impl Opener for LocalServer {
    fn open(&self) -> Opening<'_> {
        Box::pin(self.start())
    }

    fn starts_process(&self) -> bool {
        true
    }
}

/// Runs the connection until it ends or the process exits, and then stops the process.
async fn run_with(
    mut process: Link,
    inbound: mpsc::Sender<Inbound>,
    connection: impl Future<Output = Disconnect>,
) -> Disconnect {
    let disconnect = tokio::select! {
        disconnect = connection => disconnect,
        disconnect = wait_for_exit(&mut process) => {
            let _ = inbound.send(Inbound::Disconnected(disconnect.clone())).await;
            return disconnect;
        }
    };
    process.close(STOP_TIMEOUT).await;
    disconnect
}

/// Returns a port that is free at this moment.
async fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok(listener.local_addr()?.port())
}

/// Waits until the port accepts connections, or fails if the process exits. The caller sets the time limit.
async fn wait_for_port(process: &mut Link, port: u16) -> Result<(), Failure> {
    loop {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
            return Ok(());
        }
        tokio::select! {
            disconnect = wait_for_exit(process) => {
                return Err(Failure::connect(disconnect.to_string()).with_disconnect(Arc::new(disconnect)));
            }
            () = time::sleep(CONNECT_INTERVAL) => {}
        }
    }
}

/// Waits until the process exits and discards its output.
async fn wait_for_exit(process: &mut Link) -> Disconnect {
    loop {
        match process.inbound.recv().await {
            Some(Inbound::Disconnected(disconnect)) => return disconnect,
            Some(_) => {}
            None => return Disconnect::because("the server process exited"),
        }
    }
}
