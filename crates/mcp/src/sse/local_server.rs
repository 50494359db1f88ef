//! Starts a legacy SSE server as a local process on a free port, connects to it, and stops it when the link closes.

use super::{SseEndpoint, run};
use crate::{Disconnect, Failure, Inbound, Link, Opener, Opening, http::HttpClient, stdio::Command};
use std::{ffi::OsString, io, net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time,
};
use url::Url;

/// Placeholder for the port in arguments and environment variables.
pub const PORT: &str = "{port}";

/// Interval between attempts to connect to the port.
const CONNECT_INTERVAL: Duration = Duration::from_millis(50);

/// Time limit for the process to stop, including signals and their grace periods.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Command and stream path of a server that runs as a local process.
#[derive(Clone, Debug)]
pub struct LocalSseServer {
    /// Command that starts the server. `{port}` in arguments and variable values is replaced by the port, which is
    /// also set as `PORT` unless the command sets that variable itself.
    pub command: Command,
    /// Path of the event stream.
    pub path: String,
    /// Connection pool, shared with other endpoints.
    pub client: HttpClient,
}

impl LocalSseServer {
    async fn start(&self) -> Result<Link, Failure> {
        let port =
            free_port().await.map_err(|error| Failure::connect(format!("there is no free port: {error}")))?;
        let mut process = self.with_port(port).open().await?;
        let endpoint = SseEndpoint::new(self.url(port)?, self.client.clone());
        wait_for_port(&mut process, port).await?;
        let mut stream = endpoint.listen().await?;
        let post_url = stream.wait_for_post_url().await?;
        Ok(Link::start(false, move |link_io| async move {
            let inbound = link_io.inbound.clone();
            let disconnect = tokio::select! {
                disconnect = run(stream, post_url, link_io) => disconnect,
                disconnect = wait_for_exit(&mut process) => {
                    let _ = inbound.send(Inbound::Disconnected(disconnect.clone())).await;
                    return disconnect;
                }
            };
            process.close(STOP_TIMEOUT).await;
            disconnect
        }))
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
        url.parse().map_err(|_| Failure::connect("the path of the event stream is invalid"))
    }
}

impl Opener for LocalSseServer {
    fn open(&self) -> Opening<'_> {
        Box::pin(self.start())
    }

    fn starts_process(&self) -> bool {
        true
    }
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
