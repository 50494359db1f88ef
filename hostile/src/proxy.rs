//! A proxy that harms a good connection on its way: between a client and a server that both behave.
//!
//! It carries bytes both ways and knows nothing of what they mean. A [`Harm`] is done to what the server sends, on every
//! connection, from the moment it is ordered; the bytes of a connection are counted from its beginning.

use crate::mouth::Line;
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

/// How many bytes a slice has: fewer than any header line, and not a power of two.
const SLICE: usize = 7;

/// What is done to the server's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Nothing.
    None,
    /// Every piece arrives this much later.
    Latency(Duration),
    /// Both sides see the connection closed after so many bytes.
    Cut(usize),
    /// Both sides see the connection break after so many bytes.
    Reset(usize),
    /// The client sees the end of the server's bytes after so many of them, and may go on writing.
    HalfClose(usize),
    /// After so many bytes, nothing passes any more, and nobody is told.
    Silence(usize),
    /// This many bytes pass per second.
    Throttle(usize),
    /// One bit of the byte at this place is turned.
    Corrupt(usize),
    /// The bytes arrive a few at a time.
    Slice,
}

/// A proxy at work, for as long as it is kept.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    harm: Mutex<Harm>,
    connections: AtomicUsize,
}

impl Proxy {
    /// Stands before this server, and does no harm yet.
    pub async fn before(server: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared =
            Arc::new(Shared { server, harm: Mutex::new(Harm::None), connections: AtomicUsize::new(0) });
        let mut task = JoinSet::new();
        task.spawn(accept(listener, shared.clone()));
        Ok(Proxy { address, shared, _task: task })
    }

    /// Does this from now on.
    pub fn harm(&self, harm: Harm) {
        *self.shared.harm.lock().unwrap_or_else(PoisonError::into_inner) = harm;
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }
}

impl Shared {
    fn harm(&self) -> Harm {
        *self.harm.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((client, _)) = accepted {
                    shared.connections.fetch_add(1, Ordering::AcqRel);
                    connections.spawn(carry(client, shared.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(client: TcpStream, shared: Arc<Shared>) {
    let Ok(server) = TcpStream::connect(shared.server).await else { return };
    let (client, server) = (Line::new(client), Line::new(server));
    let asking = async {
        let _ = pass(&client, &server).await;
        let _ = server.close_output();
        // What is asked may end before it is answered.
        std::future::pending::<()>().await;
    };
    // An error means that one of the two has gone, and then the other has nobody to talk to.
    tokio::select! {
        () = asking => {}
        _ = answer(&server, &client, &shared) => {}
    }
}

/// Carries everything.
async fn pass(from: &Line, to: &Line) -> io::Result<()> {
    let mut buffer = Vec::new();
    while from.fill(&mut buffer).await? > 0 {
        to.write(&buffer).await?;
        buffer.clear();
    }
    Ok(())
}

/// Carries what the server says, and does the harm.
async fn answer(server: &Arc<Line>, client: &Arc<Line>, shared: &Shared) -> io::Result<()> {
    let (mut passed, mut buffer) = (0, Vec::new());
    while server.fill(&mut buffer).await? > 0 {
        let harm = shared.harm();
        match harm {
            Harm::None => client.write(&buffer).await?,
            Harm::Latency(later) => {
                time::sleep(later).await;
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
            Harm::Corrupt(place) => {
                if let Some(byte) = place.checked_sub(passed).and_then(|at| buffer.get_mut(at)) {
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

async fn end(server: &Arc<Line>, client: &Arc<Line>, harm: Harm) -> io::Result<()> {
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
