//! The TCP and HTTP/1 server: accepts connections, serves them, and gives open requests a grace period at shutdown.
//!
//! It owns the connection tasks and their limits. It does not know routes, tokens or MCP.

mod checked_stream;
mod connection_threads;
mod framing;
mod websocket;
mod woken_future;

use crate::exit::Exit;
use checked_stream::CheckedStream;
pub(crate) use connection_threads::{ConnectionPlacement, ConnectionThreads};
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
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
pub(crate) use websocket::WebSocketUpgrade;
use wharf_mcp::serve::http::{Body, Guard};
use woken_future::WakeFilter;

/// How long open requests may take after shutdown has begun.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// Timeout for reading the head of a request.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after `accept` has failed, for example because too many files are open.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 10_000;

/// Signals shutdown: its sender is dropped, so `changed` returns.
pub(crate) type ShutdownSignal = watch::Receiver<()>;

/// Controls one connection from a request handler: sets the work that follows a protocol upgrade, or closes the
/// connection.
#[derive(Clone, Default)]
pub(crate) struct ConnectionHandle(Arc<UpgradeHook>);

#[derive(Default)]
struct UpgradeHook {
    work: Mutex<Option<UpgradeFuture>>,
    /// Set after a protocol upgrade: incoming bytes are no longer HTTP.
    upgraded: Arc<AtomicBool>,
    closed: Notify,
}

type UpgradeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl ConnectionHandle {
    /// Runs `work` on this connection after HTTP ends, and stops the inspection of incoming bytes.
    pub(crate) fn upgrade_with(&self, work: impl Future<Output = ()> + Send + 'static) {
        *self.0.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::pin(work));
        self.0.upgraded.store(true, Ordering::Relaxed);
    }

    /// Closes the connection at once, even in the middle of a response, for clients that do not read.
    pub(crate) fn close_now(&self) {
        self.0.closed.notify_one();
    }

    fn take(&self) -> Option<UpgradeFuture> {
        self.0.work.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Raises the limit of open files, because the default is often too low for this many connections and the servers'
/// pipes.
#[cfg(unix)]
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = 2 * MAX_CONNECTIONS as u64;
    let wanted = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|it| it < wanted) {
        // If raising fails, the process serves fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

#[cfg(not(unix))]
pub(crate) fn raise_file_limit() {}

/// Accepts and serves connections until `shutdown` completes, then drains them for at most [`SHUTDOWN_GRACE`].
pub(crate) async fn accept<F>(
    (listener, placement): (TcpListener, &ConnectionPlacement),
    shutdown: impl Future<Output = Exit>,
    serve: impl Fn(TcpStream, ShutdownSignal) -> F,
) -> Exit
where
    F: Future<Output = ()> + Send + 'static,
{
    let (shutdown_sender, shutdown_signal) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let exit = loop {
        tokio::select! {
            exit = &mut shutdown => break exit,
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    // Without this, Nagle's algorithm would delay small responses.
                    let _ = stream.set_nodelay(true);
                    let place = placement.place();
                    if let Ok(stream) = place.adopt(stream) {
                        let (serving, runtime) = (serve(stream, shutdown_signal.clone()), place.runtime().clone());
                        connections.spawn_on(async move { serving.await; drop(place); }, &runtime);
                    }
                }
                // The process has too many open files, or the client disconnected before it was accepted.
                Err(_) => sleep(ACCEPT_RETRY_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    };
    drop((listener, shutdown_sender));
    let _ = timeout(SHUTDOWN_GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
    exit
}

/// Serves HTTP/1 on one connection, then runs the work that a protocol upgrade has set.
pub(crate) async fn serve_http<F, S>(
    stream: S,
    mut shutdown_signal: ShutdownSignal,
    respond: impl Fn(Request<Incoming>, &ConnectionHandle) -> F + Send,
) where
    F: Future<Output = Response<Body>> + Send,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection_handle = ConnectionHandle::default();
    let wake_filter = WakeFilter::new();
    let service = service_fn(|request: Request<Incoming>| {
        let response = wake_filter.filter(respond(request, &connection_handle));
        async { Ok::<_, Infallible>(response.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
    {
        let stream = CheckedStream::new(stream, connection_handle.0.upgraded.clone());
        let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut connection = pin!(connection);
        let end_filter = WakeFilter::new();
        let mut end = pin!(end_filter.filter(wait_for_end(&connection_handle, &mut shutdown_signal)));
        // A client that disconnects is not an error.
        tokio::select! {
            _ = connection.as_mut() => {}
            end = &mut end => match end {
                ConnectionEnd::Closed => return,
                ConnectionEnd::Shutdown => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            },
        }
    }
    if let Some(work) = connection_handle.take() {
        tokio::select! {
            () = work => {}
            _ = shutdown_signal.changed() => {}
        }
    }
}

/// Reason to end a connection.
enum ConnectionEnd {
    /// A handler closes it at once.
    Closed,
    /// The program stops.
    Shutdown,
}

async fn wait_for_end(handle: &ConnectionHandle, shutdown_signal: &mut ShutdownSignal) -> ConnectionEnd {
    tokio::select! {
        () = handle.0.closed.notified() => ConnectionEnd::Closed,
        _ = shutdown_signal.changed() => ConnectionEnd::Shutdown,
    }
}

/// Builds the host check for a listener. On loopback, only loopback names are valid, which blocks DNS rebinding by
/// web pages. On other addresses any host name is valid, because the operator chose to expose the server.
pub(crate) fn guard(listener: &TcpListener) -> Guard {
    Guard { hosts: if is_exposed(listener) { vec!["*".to_owned()] } else { Vec::new() }, ..Guard::default() }
}

/// Builds the host and origin check from the operator's lists. Configured hosts replace the default ones; loopback
/// names stay valid.
pub(crate) fn configured_guard(listener: &TcpListener, hosts: &[String], origins: &[String]) -> Guard {
    let hosts = if hosts.is_empty() { guard(listener).hosts } else { hosts.to_vec() };
    Guard { hosts, origins: origins.to_vec() }
}

/// Returns whether other machines can connect, which means that the address is not loopback.
fn is_exposed(listener: &TcpListener) -> bool {
    let address: Option<IpAddr> = listener.local_addr().ok().map(|it| it.ip());
    address.is_some_and(|it| !it.is_loopback())
}
