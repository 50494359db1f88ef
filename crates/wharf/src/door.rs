//! How clients come in over a port: connections are accepted, served, and on leaving given a moment to end.

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

/// How long requests under way may take once we are leaving.
const GRACE: Duration = Duration::from_secs(3);

/// How long a client may take to say what it wants.
pub(crate) const HEADERS: Duration = Duration::from_secs(10);

/// How long to wait when no more connections can be taken.
const MOMENT: Duration = Duration::from_millis(100);

/// How many connections there may be at once.
const CONNECTIONS: usize = 10_000;

/// The longest message of a WebSocket.
const LONGEST: usize = 4 << 20;

/// How much is read from a WebSocket at once. Each has that much memory from its beginning to its end.
const PIECE: usize = 8 << 10;

/// Changes, or rather ends, when we are leaving.
pub(crate) type Leaving = watch::Receiver<()>;

/// What becomes of a connection beside HTTP: what it goes on with when it is no longer HTTP, or that it is closed.
#[derive(Clone, Default)]
pub(crate) struct Afterwards(Arc<Fate>);

#[derive(Default)]
struct Fate {
    work: Mutex<Option<Work>>,
    /// What comes in is no longer HTTP.
    switched: Arc<AtomicBool>,
    hung_up: Notify,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Afterwards {
    /// Has this done in place of HTTP.
    pub(crate) fn go_on_with(&self, work: impl Future<Output = ()> + Send + 'static) {
        *self.0.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::pin(work));
        self.0.switched.store(true, Ordering::Relaxed);
    }

    /// Closes the connection, even in the middle of an answer: for clients that do not read what they are told.
    pub(crate) fn hang_up(&self) {
        self.0.hung_up.notify_one();
    }

    fn take(&self) -> Option<Work> {
        self.0.work.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Makes room for that many connections, and for what servers need: by default a process may have few files open.
#[cfg(unix)]
pub(crate) fn make_room() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = 2 * CONNECTIONS as u64;
    let wanted = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|it| it < wanted) {
        // If it may not be, there is room for fewer.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

#[cfg(not(unix))]
pub(crate) fn make_room() {}

/// Serves everybody who comes to the port, until it is time to leave.
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
                    // Without it every answer would wait for a timer.
                    let _ = stream.set_nodelay(true);
                    connections.spawn(serve(stream, leaving.clone()));
                }
                // Too many are open, or one left before it was let in.
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

/// Answers the requests of one connection, and goes on with what they leave to be done.
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
        // A client that breaks off is nothing to report.
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

/// What a WebSocket may take.
pub(crate) fn bounded_socket() -> WebSocketConfig {
    let config = WebSocketConfig::default().read_buffer_size(PIECE);
    config.max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST))
}

/// On loopback, a page of a stranger must not come in by a name of its own for this machine. Elsewhere the operator has
/// opened the door, and the machine may have any name.
pub(crate) fn guard(listener: &TcpListener) -> Guard {
    Guard { hosts: if is_open(listener) { vec!["*".to_owned()] } else { Vec::new() }, ..Guard::default() }
}

/// The same, with the names and the pages that the operator names. Where there are names, no others count.
pub(crate) fn guard_of(listener: &TcpListener, hosts: &[String], origins: &[String]) -> Guard {
    let hosts = if hosts.is_empty() { guard(listener).hosts } else { hosts.to_vec() };
    Guard { hosts, origins: origins.to_vec() }
}

/// Whether others than this machine can come in.
fn is_open(listener: &TcpListener) -> bool {
    let address: Option<IpAddr> = listener.local_addr().ok().map(|it| it.ip());
    address.is_some_and(|it| !it.is_loopback())
}
