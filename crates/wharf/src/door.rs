//! The TCP and HTTP/1 server: accepts connections, serves them, and gives open requests a grace period at shutdown.
//!
//! It owns the connection tasks and their limits. It does not know routes, tokens or MCP.

mod framing;
mod watched;

use crate::exit::Exit;
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    net::IpAddr,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use watched::Watched;
use wharf_mcp::serve::http::{Body, Guard};

/// How long open requests may take after shutdown has begun.
const GRACE: Duration = Duration::from_secs(3);

/// Timeout for reading the head of a request.
pub(crate) const HEADERS: Duration = Duration::from_secs(10);

/// Pause after `accept` has failed, for example because too many files are open.
const MOMENT: Duration = Duration::from_millis(100);

/// Maximum number of open connections.
const CONNECTIONS: usize = 10_000;

/// Maximum size of one WebSocket message, in bytes.
const LONGEST: usize = 4 << 20;

/// Size of a WebSocket's read buffer, in bytes. Every open WebSocket holds this much memory.
const PIECE: usize = 8 << 10;

/// Signals shutdown: its sender is dropped, so `changed` returns.
pub(crate) type Leaving = watch::Receiver<()>;

/// Controls one connection from a request handler: sets the work that follows a protocol upgrade, or closes the
/// connection.
#[derive(Clone, Default)]
pub(crate) struct Afterwards(Arc<Fate>);

#[derive(Default)]
struct Fate {
    work: Mutex<Option<Work>>,
    /// Set after a protocol upgrade: incoming bytes are no longer HTTP.
    switched: Arc<AtomicBool>,
    hung_up: Notify,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Afterwards {
    /// Runs `work` on this connection after HTTP ends, and stops the inspection of incoming bytes.
    pub(crate) fn go_on_with(&self, work: impl Future<Output = ()> + Send + 'static) {
        *self.0.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::pin(work));
        self.0.switched.store(true, Ordering::Relaxed);
    }

    /// Closes the connection at once, even in the middle of a response, for clients that do not read.
    pub(crate) fn hang_up(&self) {
        self.0.hung_up.notify_one();
    }

    fn take(&self) -> Option<Work> {
        self.0.work.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Raises the limit of open files, because the default is often too low for this many connections and the servers'
/// pipes.
#[cfg(unix)]
pub(crate) fn make_room() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = 2 * CONNECTIONS as u64;
    let wanted = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|it| it < wanted) {
        // If raising fails, the process serves fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

#[cfg(not(unix))]
pub(crate) fn make_room() {}

/// Accepts and serves connections until `leave` completes, then drains them for at most [`GRACE`].
pub(crate) async fn accept<F>(
    listener: TcpListener,
    leave: impl Future<Output = Exit>,
    serve: impl Fn(TcpStream, Leaving) -> F,
) -> Exit
where
    F: Future<Output = ()> + Send + 'static,
{
    let (tell, leaving) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut leave = pin!(leave);
    let exit = loop {
        tokio::select! {
            exit = &mut leave => break exit,
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    // Without this, Nagle's algorithm would delay small responses.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(serve(stream, leaving.clone()));
                }
                // The process has too many open files, or the client disconnected before it was accepted.
                Err(_) => sleep(MOMENT).await,
            },
            Some(_) = connections.join_next() => {}
        }
    };
    drop((listener, tell));
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
    exit
}

/// Serves HTTP/1 on one connection, then runs the work that a protocol upgrade has set.
pub(crate) async fn over_http<F>(
    stream: TcpStream,
    mut leaving: Leaving,
    respond: impl Fn(Request<Incoming>, &Afterwards) -> F + Send,
) where
    F: Future<Output = Response<Body>> + Send,
{
    let afterwards = Afterwards::default();
    let service = service_fn(|request: Request<Incoming>| {
        let response = respond(request, &afterwards);
        async { Ok::<_, Infallible>(response.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    {
        let stream = Watched::new(stream, afterwards.0.switched.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut connection = pin!(connection);
        // A client that disconnects is not an error.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = afterwards.0.hung_up.notified() => return,
            _ = leaving.changed() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
    if let Some(work) = afterwards.take() {
        tokio::select! {
            () = work => {}
            _ = leaving.changed() => {}
        }
    }
}

/// The limits of a WebSocket.
pub(crate) fn bounded_socket() -> WebSocketConfig {
    let config = WebSocketConfig::default().read_buffer_size(PIECE);
    config.max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST))
}

/// Builds the host check for a listener. On loopback, only loopback names are valid, which blocks DNS rebinding by
/// web pages. On other addresses any host name is valid, because the operator chose to expose the server.
pub(crate) fn guard(listener: &TcpListener) -> Guard {
    Guard { hosts: if is_open(listener) { vec!["*".to_owned()] } else { Vec::new() }, ..Guard::default() }
}

/// Builds the host and origin check from the operator's lists. Configured hosts replace the default ones; loopback
/// names stay valid.
pub(crate) fn guard_of(listener: &TcpListener, hosts: &[String], origins: &[String]) -> Guard {
    let hosts = if hosts.is_empty() { guard(listener).hosts } else { hosts.to_vec() };
    Guard { hosts, origins: origins.to_vec() }
}

/// Returns whether other machines can connect, which means that the address is not loopback.
fn is_open(listener: &TcpListener) -> bool {
    let address: Option<IpAddr> = listener.local_addr().ok().map(|it| it.ip());
    address.is_some_and(|it| !it.is_loopback())
}
