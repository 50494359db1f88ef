//! Starts a legacy SSE server as a local process on a free port, connects to it, and stops it when the link closes.

use super::{Endpoint, run};
use crate::{Failure, Goodbye, Inbound, Link, Opener, Opening, http::Client, stdio::Command};
use std::{ffi::OsString, io, net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time,
};
use url::Url;

/// Placeholder for the port in arguments and environment variables.
pub const PORT: &str = "{port}";

/// Interval between attempts to connect to the port.
const POLL: Duration = Duration::from_millis(50);

/// Time limit for the process to stop, including signals and their grace periods.
const LEAVING: Duration = Duration::from_secs(10);

/// Command and stream path of a server that runs as a local process.
#[derive(Clone, Debug)]
pub struct Served {
    /// Command that starts the server. `{port}` in arguments and variable values is replaced by the port, which is
    /// also set as `PORT` unless the command sets that variable itself.
    pub command: Command,
    /// Path of the event stream.
    pub path: String,
    /// Connection pool, shared with other endpoints.
    pub client: Client,
}

impl Served {
    async fn start(&self) -> Result<Link, Failure> {
        let port =
            free_port().await.map_err(|error| Failure::connect(format!("there is no free port: {error}")))?;
        let mut process = self.on(port).open().await?;
        let endpoint = Endpoint::new(self.url(port)?, self.client.clone());
        listening(&mut process, port).await?;
        let mut stream = endpoint.listen().await?;
        let place = stream.place_to_post().await?;
        Ok(Link::start(false, move |far_end| async move {
            let inbound = far_end.inbound.clone();
            let goodbye = tokio::select! {
                goodbye = run(stream, place, far_end) => goodbye,
                goodbye = gone(&mut process) => {
                    let _ = inbound.send(Inbound::Gone(goodbye.clone())).await;
                    return goodbye;
                }
            };
            process.close(LEAVING).await;
            goodbye
        }))
    }

    /// Returns the command with this port filled in.
    fn on(&self, port: u16) -> Command {
        let port = port.to_string();
        let filled = |text: &OsString| match text.to_str() {
            Some(text) if text.contains(PORT) => text.replace(PORT, &port).into(),
            _ => text.clone(),
        };
        let mut command = self.command.clone();
        command.args = command.args.iter().map(filled).collect();
        command.env = command.env.iter().map(|(name, value)| (name.clone(), filled(value))).collect();
        if !command.env.iter().any(|(name, _)| name == "PORT") {
            command.env.push(("PORT".into(), port.into()));
        }
        command
    }

    fn url(&self, port: u16) -> Result<Url, Failure> {
        let url = format!("http://127.0.0.1:{port}/{}", self.path.trim_start_matches('/'));
        url.parse().map_err(|_| Failure::connect("the path of its stream is not one"))
    }
}

impl Opener for Served {
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
async fn listening(process: &mut Link, port: u16) -> Result<(), Failure> {
    loop {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
            return Ok(());
        }
        tokio::select! {
            goodbye = gone(process) => {
                return Err(Failure::connect(goodbye.to_string()).with_goodbye(Arc::new(goodbye)));
            }
            () = time::sleep(POLL) => {}
        }
    }
}

/// Waits until the process exits and discards its output.
async fn gone(process: &mut Link) -> Goodbye {
    loop {
        match process.inbound.recv().await {
            Some(Inbound::Gone(goodbye)) => return goodbye,
            Some(_) => {}
            None => return Goodbye::because("the server's process has ended"),
        }
    }
}
