//! Client transport for servers reached over streamable HTTP.
//!
//! Every message is its own POST. The response carries the answer, as JSON or as an SSE stream that ends with it. The
//! link's task owns all exchanges in flight; dropping an exchange closes its stream. This module does not match
//! answers to callers: the session does.

mod answer;
mod authorized;
mod client;
mod exchange;
pub(crate) mod headers;
mod notification_stream;
mod plain_body;
mod plain_connection;
mod plain_head;
mod plain_http_pool;
mod response_body;

use crate::{
    Disconnect, Inbound, Link, Opener, Opening, Outbound,
    frame::FRAME_LIMIT,
    link::{DirectAnswers, DirectLink, DirectRequest},
    oauth::Authorizer,
};
use ::http::{HeaderMap, HeaderValue};
pub(crate) use answer::{Answer, BodyError};
pub(crate) use authorized::send_request;
pub use client::HttpClient;
use client::is_not_http;
pub(crate) use client::no_response;
use exchange::{Exchange, ExchangeResult};
pub use headers::{decode_value, encode_value};
use plain_http_pool::{MAX_IDLE, PlainHttpPool};
pub(crate) use response_body::status_failure;
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
    time,
};
use url::Url;

/// Time limit for the DELETE that ends a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// Address and settings of a server.
#[derive(Clone, Debug)]
pub struct HttpEndpoint {
    /// URL of the MCP endpoint.
    pub url: Url,
    /// Configured headers of every request, such as static credentials.
    pub headers: HeaderMap,
    /// Source of tokens that expire, such as OAuth.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Whether to end the session with a DELETE when the link closes.
    pub terminate_on_close: bool,
    /// Maximum silence on an SSE stream. Without it, only the deadline of each request applies.
    pub read_timeout: Option<Duration>,
    /// Maximum size of a message from the server, in bytes.
    pub frame_limit: usize,
    /// Connection pool, shared with other endpoints.
    pub client: HttpClient,
}

/// State shared by all exchanges of one link.
#[derive(Debug)]
pub(crate) struct Context {
    endpoint: HttpEndpoint,
    /// Keep-alive pool for plain HTTP, if the URL allows it.
    plain_pool: Option<Arc<PlainHttpPool>>,
    pub(crate) inbound: mpsc::Sender<Inbound>,
    /// Number of messages that were sent to the session, and of those that it has handled.
    delivered: AtomicU64,
    direct_answers: Arc<DirectAnswers>,
    /// Current session id, replaced when the session is renewed.
    session: watch::Sender<Option<HeaderValue>>,
    /// Protocol version negotiated in the handshake.
    version: OnceLock<std::borrow::Cow<'static, str>>,
    /// The `initialize` request, sent again when the server has lost the session.
    initialize: OnceLock<Outbound>,
    /// Whether direct requests have to wait, because the server must process another message first.
    is_barred: AtomicBool,
    /// Passes direct requests to the link's task that the server rejected because it has lost the session. Holds at most
    /// one message per request.
    lost: mpsc::UnboundedSender<Outbound>,
}

/// The half of a link that belongs to its task.
pub(crate) struct HttpLinkIo {
    pub(crate) context: Arc<Context>,
    outbound: mpsc::Receiver<Outbound>,
    lost_requests: mpsc::UnboundedReceiver<Outbound>,
}

/// Sends requests in the tasks of their callers.
#[derive(Debug)]
struct DirectHttp(Arc<Context>);

/// State of the link's task.
struct HttpLink {
    context: Arc<Context>,
    exchanges: JoinSet<ExchangeResult>,
    running: HashMap<u64, AbortHandle>,
    notification_stream: JoinSet<()>,
    /// Exchange that must finish before the next message is sent.
    barrier: Option<tokio::task::Id>,
    renewing: bool,
    /// Messages that failed because the session was lost. They are sent again after the renewal.
    lost: Vec<Outbound>,
}

impl HttpEndpoint {
    /// Creates an endpoint with default settings and no configured headers.
    pub fn new(url: Url, client: HttpClient) -> HttpEndpoint {
        HttpEndpoint {
            url,
            headers: HeaderMap::new(),
            authorizer: None,
            terminate_on_close: true,
            read_timeout: None,
            frame_limit: FRAME_LIMIT,
            client,
        }
    }
}

impl Opener for HttpEndpoint {
    fn open(&self) -> Opening<'_> {
        let endpoint = self.clone();
        Box::pin(async { Ok(start(endpoint, run)) })
    }
}

/// Starts a link to an endpoint. `run` is the task of the link.
pub(crate) fn start<F>(endpoint: HttpEndpoint, run: impl FnOnce(HttpLinkIo) -> F) -> Link
where
    F: Future<Output = Disconnect> + Send + 'static,
{
    let mut direct = None;
    let mut link = Link::start(true, |link_io| {
        let (lost, lost_requests) = mpsc::unbounded_channel();
        let context = Arc::new(Context::new(endpoint, link_io.inbound, link_io.direct_answers, lost));
        direct = Some(DirectHttp(context.clone()));
        run(HttpLinkIo { context, outbound: link_io.outbound, lost_requests })
    });
    link.direct = direct.map(|it| Arc::new(it) as Arc<dyn DirectLink>);
    link
}

/// Runs the task of a link.
pub(crate) async fn run(link_io: HttpLinkIo) -> Disconnect {
    let HttpLinkIo { context, mut outbound, mut lost_requests } = link_io;
    let mut http = HttpLink {
        context,
        exchanges: JoinSet::new(),
        running: HashMap::new(),
        notification_stream: JoinSet::new(),
        barrier: None,
        renewing: false,
        lost: Vec::new(),
    };
    let mut expiry = time::interval(MAX_IDLE);
    loop {
        tokio::select! {
            message = outbound.recv(), if http.barrier.is_none() => match message {
                Some(message) => http.send(message),
                None => break,
            },
            Some(done) = http.exchanges.join_next_with_id() => http.handle_done(done),
            Some(message) = lost_requests.recv() => http.renew_session(message),
            () = http.context.inbound.closed() => break,
            _ = expiry.tick() => http.context.plain_pool.iter().for_each(|it| it.drop_expired()),
        }
    }
    http.close().await;
    Disconnect::because("the client closed the connection")
}

impl Context {
    fn new(
        endpoint: HttpEndpoint,
        inbound: mpsc::Sender<Inbound>,
        direct_answers: Arc<DirectAnswers>,
        lost: mpsc::UnboundedSender<Outbound>,
    ) -> Context {
        let plain_pool =
            PlainHttpPool::for_url(&endpoint.url, &endpoint.headers, &endpoint.client).map(Arc::new);
        Context {
            endpoint,
            plain_pool,
            inbound,
            delivered: AtomicU64::new(0),
            direct_answers,
            session: watch::Sender::new(None),
            version: OnceLock::new(),
            initialize: OnceLock::new(),
            is_barred: AtomicBool::new(false),
            lost,
        }
    }
}

impl DirectLink for DirectHttp {
    fn is_ready(&self) -> bool {
        !self.0.is_barred.load(Ordering::Acquire)
    }

    fn request(&self, message: Outbound) -> DirectRequest {
        Box::pin(Exchange::new(message).run_directly(self.0.clone()))
    }
}

impl HttpLink {
    /// Holds messages back until this exchange is over, or no longer.
    fn set_barrier(&mut self, exchange: Option<tokio::task::Id>) {
        self.context.is_barred.store(exchange.is_some(), Ordering::Release);
        self.barrier = exchange;
    }

    fn send(&mut self, message: Outbound) {
        match &message {
            Outbound::Abandon { id } => {
                if let Some(exchange) = self.running.remove(id) {
                    exchange.abort();
                }
            }
            Outbound::Request { method, .. } if method == "initialize" => {
                // Direct requests wait for `notifications/initialized`, too.
                self.context.is_barred.store(true, Ordering::Release);
                let _ = self.context.initialize.set(message.clone());
                self.start(Exchange::new(message));
            }
            // The server must process this notification before it receives any other message.
            Outbound::Notification { method, routing, .. } if method == "notifications/initialized" => {
                routing.version.iter().for_each(|version| drop(self.context.version.set(version.clone())));
                let initialized = self.start(Exchange::new(message));
                self.set_barrier(Some(initialized));
            }
            _ => {
                self.start(Exchange::new(message));
            }
        }
    }

    fn start(&mut self, exchange: Exchange) -> tokio::task::Id {
        let id = exchange.request_id();
        // Boxed, because spawning a future and storing its result move the whole future several times.
        let task = self.exchanges.spawn(Box::pin(exchange.run(self.context.clone())));
        let task_id = task.id();
        id.into_iter().for_each(|id| drop(self.running.insert(id, task.clone())));
        task_id
    }

    fn handle_done(&mut self, done: Result<(tokio::task::Id, ExchangeResult), tokio::task::JoinError>) {
        let (task, done) = match done {
            Ok((task, done)) => (task, Some(done)),
            Err(aborted) => (aborted.id(), None),
        };
        if self.barrier == Some(task) {
            self.set_barrier(None);
        }
        match done {
            None => {}
            Some(ExchangeResult::Over(id)) => id.iter().for_each(|id| drop(self.running.remove(id))),
            Some(ExchangeResult::Initialized) => self.listen(),
            Some(ExchangeResult::SessionLost(message)) => self.renew_session(message),
            Some(ExchangeResult::Renewed) => {
                self.renewing = false;
                self.listen();
                for message in std::mem::take(&mut self.lost) {
                    self.start(Exchange::retry(message));
                }
            }
        }
    }

    /// Starts a new session, unless that is in progress, and then sends the message again.
    fn renew_session(&mut self, message: Outbound) {
        self.lost.push(message);
        if !std::mem::replace(&mut self.renewing, true) {
            let renewal = exchange::renew(self.context.clone());
            let renewal = self.exchanges.spawn(renewal).id();
            self.set_barrier(Some(renewal));
        }
    }

    /// Opens the GET stream for notifications and server requests, replacing any earlier one.
    fn listen(&mut self) {
        self.notification_stream.abort_all();
        self.notification_stream.spawn(notification_stream::run(self.context.clone()));
    }

    async fn close(mut self) {
        self.notification_stream.shutdown().await;
        self.exchanges.shutdown().await;
        let has_session = self.context.session.borrow().is_some();
        if has_session && self.context.endpoint.terminate_on_close {
            let _ = time::timeout(DELETE_TIMEOUT, self.context.delete()).await;
        }
    }
}
