//! A proxy that damages the connection between a well-behaved client and a well-behaved server.
//!
//! It forwards bytes in both directions and does not parse them. A [`Harm`] applies to the bytes from the server,
//! on every connection, from the moment it is set. Byte positions count from the beginning of each connection.

use crate::performer::SharedConnection;
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time,
};

/// Bytes per slice: less than any header line, and not a power of two.
const SLICE: usize = 7;

/// Damage to the server's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// None.
    None,
    /// Delays every chunk by this long.
    Latency(Duration),
    /// Closes the connection on both sides after this many bytes.
    Cut(usize),
    /// Resets the connection on both sides after this many bytes.
    Reset(usize),
    /// Closes only the direction to the client after this many bytes; the client can still write.
    HalfClose(usize),
    /// Forwards nothing after this many bytes, without closing the connection.
    Silence(usize),
    /// Limits the rate to this many bytes per second.
    Throttle(usize),
    /// Flips one bit of the byte at this position.
    Corrupt(usize),
    /// Forwards a few bytes at a time.
    Slice,
}

/// A running proxy. It stops when dropped.
#[derive(Debug)]
pub struct Proxy {
    /// Address it listens on.
    pub address: SocketAddr,
    state: Arc<ProxyState>,
    _task: JoinSet<()>,
}

#[derive(Debug)]
struct ProxyState {
    server: SocketAddr,
    harm: Mutex<Harm>,
    connections: AtomicUsize,
}

impl Proxy {
    /// Starts a proxy in front of this server, without damage.
    pub async fn in_front_of(server: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state =
            Arc::new(ProxyState { server, harm: Mutex::new(Harm::None), connections: AtomicUsize::new(0) });
        let mut task = JoinSet::new();
        task.spawn(accept(listener, state.clone()));
        Ok(Proxy { address, state, _task: task })
    }

    /// Applies this damage from now on.
    pub fn harm(&self, harm: Harm) {
        *self.state.harm.lock().unwrap_or_else(PoisonError::into_inner) = harm;
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Acquire)
    }
}

impl ProxyState {
    fn harm(&self) -> Harm {
        *self.harm.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, state: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((client, _)) = accepted {
                    state.connections.fetch_add(1, Ordering::AcqRel);
                    connections.spawn(forward(client, state.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn forward(client: TcpStream, state: Arc<ProxyState>) {
    let Ok(server) = TcpStream::connect(state.server).await else { return };
    let (client, server) = (SharedConnection::new(client), SharedConnection::new(server));
    let requests = async {
        let _ = pass(&client, &server).await;
        let _ = server.close_output();
        // The client may finish sending before the response ends.
        std::future::pending::<()>().await;
    };
    // An error means that one side is gone; the proxy then closes the other.
    tokio::select! {
        () = requests => {}
        _ = answer(&server, &client, &state) => {}
    }
}

/// Forwards everything unchanged.
async fn pass(from: &SharedConnection, to: &SharedConnection) -> io::Result<()> {
    let mut buffer = Vec::new();
    while from.fill(&mut buffer).await? > 0 {
        to.write(&buffer).await?;
        buffer.clear();
    }
    Ok(())
}

/// Forwards the server's bytes and applies the damage.
async fn answer(
    server: &Arc<SharedConnection>,
    client: &Arc<SharedConnection>,
    state: &ProxyState,
) -> io::Result<()> {
    let (mut passed, mut buffer) = (0, Vec::new());
    while server.fill(&mut buffer).await? > 0 {
        let harm = state.harm();
        match harm {
            Harm::None => client.write(&buffer).await?,
            Harm::Latency(delay) => {
                time::sleep(delay).await;
                client.write(&buffer).await?;
            }
            Harm::Throttle(rate) => {
                for piece in buffer.chunks((rate / 20).max(1)) {
                    client.write(piece).await?;
                    time::sleep(Duration::from_millis(50)).await;
                }
            }
            Harm::Slice => {
                for piece in buffer.chunks(SLICE) {
                    client.write(piece).await?;
                    tokio::task::yield_now().await;
                }
            }
            Harm::Corrupt(position) => {
                if let Some(byte) = position.checked_sub(passed).and_then(|at| buffer.get_mut(at)) {
                    *byte ^= 0x10;
                }
                client.write(&buffer).await?;
            }
            Harm::Cut(after) | Harm::Reset(after) | Harm::HalfClose(after) | Harm::Silence(after) => {
                let room = after.saturating_sub(passed).min(buffer.len());
                client.write(&buffer[..room]).await?;
                if room < buffer.len() {
                    return end(server, client, harm).await;
                }
            }
        }
        passed += buffer.len();
        buffer.clear();
    }
    client.close_output()
}

async fn end(server: &Arc<SharedConnection>, client: &Arc<SharedConnection>, harm: Harm) -> io::Result<()> {
    match harm {
        Harm::Reset(_) => {
            let _ = server.reset();
            client.reset()
        }
        Harm::HalfClose(_) => {
            client.close_output()?;
            std::future::pending().await
        }
        Harm::Silence(_) => std::future::pending().await,
        _ => Ok(()),
    }
}
