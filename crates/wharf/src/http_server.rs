//! The TCP and HTTP/1 server: accepts connections, serves them, and gives open requests a grace period at shutdown.
//!
//! It owns the connection tasks and their limits. It does not know routes, tokens or MCP.

mod body_decoder;
mod client_stream;
mod connection;
mod connection_threads;
mod pending_output;
mod repeated_head;
mod request_body;
mod request_head;
mod response_head;
#[cfg(test)]
mod tests;
mod websocket;
mod woken_future;

use crate::exit::Exit;
use connection::{Activity, Connection};
pub(crate) use connection_threads::{ConnectionPlacement, ConnectionThreads};
use http::{Request, Response};
pub(crate) use request_body::RequestBody;
use std::{
    any::Any,
    net::IpAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
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
use woken_future::WokenFuture;

/// How long open requests may take after shutdown has begun.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// How long a connection waits for the head of a request. It is measured in steps of this length, so it may take twice as
/// long after an earlier request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after `accept` has failed, for example because too many files are open.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 10_000;

/// Signals shutdown: its sender is dropped, so `changed` returns.
pub(crate) type ShutdownSignal = watch::Receiver<()>;

/// Controls one connection from a request handler: sets the work that follows a protocol upgrade, closes the
/// connection, or remembers what the handler has found out about the head of the request.
#[derive(Clone, Default)]
pub(crate) struct ConnectionHandle(Arc<ConnectionState>);

#[derive(Default)]
struct ConnectionState {
    work: Mutex<Option<UpgradeWork>>,
    closed: Notify,
    /// Belongs to the last head, whatever length its body had.
    remembered: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

/// A connection after a protocol upgrade.
pub(crate) type UpgradedStream = Box<dyn ByteStream>;

/// A stream that bytes are read from and written to.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

type UpgradeWork = Box<dyn FnOnce(UpgradedStream) -> UpgradeFuture + Send>;

type UpgradeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl ConnectionHandle {
    /// Runs `work` on this connection after HTTP ends.
    pub(crate) fn upgrade_with<F>(&self, work: impl FnOnce(UpgradedStream) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let work: UpgradeWork = Box::new(|stream| Box::pin(work(stream)));
        *self.0.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
    }

    /// Closes the connection at once, even in the middle of a response, for clients that do not read.
    pub(crate) fn close_now(&self) {
        self.0.closed.notify_one();
    }

    /// Keeps a value for the requests that repeat the head of this one. Only the length of their body may differ.
    pub(crate) fn remember(&self, value: impl Any + Send + Sync) {
        *self.0.remembered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(value));
    }

    /// Returns the value that an earlier request with the same head has left.
    pub(crate) fn recall<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let remembered = self.0.remembered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        remembered.and_then(|it| it.downcast().ok())
    }

    fn forget(&self) {
        *self.0.remembered.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn take(&self) -> Option<UpgradeWork> {
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
    respond: impl Fn(Request<RequestBody>, &ConnectionHandle) -> F + Send,
) where
    F: Future<Output = Response<Body>> + Send,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (connection_handle, activity) = (ConnectionHandle::default(), Activity::default());
    let upgraded = {
        let mut serving = pin!(Connection::new(stream, &connection_handle, &activity).serve(respond));
        let end = wait_for_end(&connection_handle, &activity, &mut shutdown_signal);
        let end = pin!(WokenFuture::new(end));
        tokio::select! {
            biased;
            upgraded = &mut serving => upgraded,
            end = end => match end {
                ConnectionEnd::Closed => return,
                ConnectionEnd::Shutdown if activity.waiting_for().is_some() => return,
                ConnectionEnd::Shutdown => {
                    activity.is_draining.store(true, Ordering::Relaxed);
                    serving.await
                }
            },
        }
    };
    if let (Some(stream), Some(work)) = (upgraded, connection_handle.take()) {
        tokio::select! {
            () = work(Box::new(stream)) => {}
            _ = shutdown_signal.changed() => {}
        }
    }
}

/// Reason to end a connection.
enum ConnectionEnd {
    /// A handler closes it at once, or its client sends no request.
    Closed,
    /// The program stops.
    Shutdown,
}

async fn wait_for_end(
    handle: &ConnectionHandle,
    activity: &Activity,
    shutdown_signal: &mut ShutdownSignal,
) -> ConnectionEnd {
    tokio::select! {
        () = handle.0.closed.notified() => ConnectionEnd::Closed,
        () = wait_until_idle(activity) => ConnectionEnd::Closed,
        _ = shutdown_signal.changed() => ConnectionEnd::Shutdown,
    }
}

/// Waits until the connection has waited for the same head for [`HEAD_TIMEOUT`]. Looks at no clock for each request.
async fn wait_until_idle(activity: &Activity) {
    loop {
        let waiting = activity.waiting_for();
        sleep(HEAD_TIMEOUT).await;
        if waiting.is_some() && activity.waiting_for() == waiting {
            return;
        }
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
