//! Client transport for servers reached over streamable HTTP.
//!
//! Every message is its own POST. The response carries the answer, as JSON or as an SSE stream that ends with it. The
//! link's task owns all exchanges in flight; dropping an exchange closes its stream. This module does not match
//! answers to callers: the session does.

mod answer;
mod client;
mod exchange;
pub(crate) mod headers;
mod lane;
mod standing;

use crate::{
    Goodbye, Inbound, Link, Opener, Opening, Outbound, frame::FRAME_LIMIT, link::FarEnd, oauth::Authorizer,
};
use ::http::{HeaderMap, HeaderValue};
pub(crate) use answer::{Answer, Broken};
pub use client::Client;
use client::is_not_http;
pub(crate) use client::no_response;
use exchange::{Done, Exchange};
pub(crate) use exchange::{is_stream, refusal};
pub use headers::{decode_value, encode_value};
use lane::Lane;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time,
};
use url::Url;

/// Time limit for the DELETE that ends a session.
const FAREWELL: Duration = Duration::from_secs(2);

/// Address and settings of a server.
#[derive(Clone, Debug)]
pub struct Endpoint {
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
    pub client: Client,
}

/// State shared by all exchanges of one link.
#[derive(Debug)]
pub(crate) struct Context {
    endpoint: Endpoint,
    /// Keep-alive pool for plain HTTP, if the URL allows it.
    lane: Option<Lane>,
    inbound: tokio::sync::mpsc::Sender<Inbound>,
    /// Current session id, replaced when the session is renewed.
    session: watch::Sender<Option<HeaderValue>>,
    /// Protocol version negotiated in the handshake.
    version: OnceLock<std::borrow::Cow<'static, str>>,
    /// The `initialize` request, sent again when the server has lost the session.
    initialize: OnceLock<Outbound>,
}

/// State of the link's task.
struct Http {
    context: Arc<Context>,
    exchanges: JoinSet<Done>,
    running: HashMap<u64, AbortHandle>,
    standing: JoinSet<()>,
    /// Exchange that must finish before the next message is sent.
    barrier: Option<tokio::task::Id>,
    renewing: bool,
    /// Messages that failed because the session was lost. They are sent again after the renewal.
    lost: Vec<Outbound>,
}

impl Endpoint {
    /// Creates an endpoint with default settings and no configured headers.
    pub fn new(url: Url, client: Client) -> Endpoint {
        Endpoint {
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

impl Opener for Endpoint {
    fn open(&self) -> Opening<'_> {
        let endpoint = self.clone();
        Box::pin(async { Ok(Link::start(true, |far_end| run(endpoint, far_end))) })
    }
}

async fn run(endpoint: Endpoint, far_end: FarEnd) -> Goodbye {
    let FarEnd { mut outbound, inbound, .. } = far_end;
    let (session, _) = watch::channel(None);
    let lane = Lane::to(&endpoint.url, &endpoint.client);
    let context = Arc::new(Context {
        endpoint,
        lane,
        inbound,
        session,
        version: OnceLock::new(),
        initialize: OnceLock::new(),
    });
    let mut http = Http {
        context,
        exchanges: JoinSet::new(),
        running: HashMap::new(),
        standing: JoinSet::new(),
        barrier: None,
        renewing: false,
        lost: Vec::new(),
    };
    loop {
        tokio::select! {
            message = outbound.recv(), if http.barrier.is_none() => match message {
                Some(message) => http.send(message),
                None => break,
            },
            Some(done) = http.exchanges.join_next_with_id() => http.settle(done),
            () = http.context.inbound.closed() => break,
        }
    }
    http.hang_up().await;
    Goodbye::because("we hung up")
}

impl Http {
    fn send(&mut self, message: Outbound) {
        match &message {
            Outbound::Abandon { id } => {
                if let Some(exchange) = self.running.remove(id) {
                    exchange.abort();
                }
            }
            Outbound::Request { method, .. } if method == "initialize" => {
                let _ = self.context.initialize.set(message.clone());
                self.start(Exchange::first(message));
            }
            // The server must process this notification before it receives any other message.
            Outbound::Notification { method, routing, .. } if method == "notifications/initialized" => {
                routing.version.iter().for_each(|version| drop(self.context.version.set(version.clone())));
                self.barrier = Some(self.start(Exchange::first(message)));
            }
            _ => {
                self.start(Exchange::first(message));
            }
        }
    }

    fn start(&mut self, exchange: Exchange) -> tokio::task::Id {
        let id = exchange.request_id();
        let task = self.exchanges.spawn(exchange.run(self.context.clone()));
        let task_id = task.id();
        id.into_iter().for_each(|id| drop(self.running.insert(id, task.clone())));
        task_id
    }

    fn settle(&mut self, done: Result<(tokio::task::Id, Done), tokio::task::JoinError>) {
        let (task, done) = match done {
            Ok((task, done)) => (task, Some(done)),
            Err(aborted) => (aborted.id(), None),
        };
        if self.barrier == Some(task) {
            self.barrier = None;
        }
        match done {
            None => {}
            Some(Done::Over(id)) => id.iter().for_each(|id| drop(self.running.remove(id))),
            Some(Done::Initialized) => self.listen(),
            Some(Done::SessionLost(message)) => {
                self.lost.push(message);
                if !std::mem::replace(&mut self.renewing, true) {
                    let renewal = exchange::renew(self.context.clone());
                    self.barrier = Some(self.exchanges.spawn(renewal).id());
                }
            }
            Some(Done::Renewed) => {
                self.renewing = false;
                self.listen();
                for message in std::mem::take(&mut self.lost) {
                    self.start(Exchange::again(message));
                }
            }
        }
    }

    /// Opens the GET stream for notifications and server requests, replacing any earlier one.
    fn listen(&mut self) {
        self.standing.abort_all();
        self.standing.spawn(standing::run(self.context.clone()));
    }

    async fn hang_up(mut self) {
        self.standing.shutdown().await;
        self.exchanges.shutdown().await;
        let has_session = self.context.session.borrow().is_some();
        if has_session && self.context.endpoint.terminate_on_close {
            let _ = time::timeout(FAREWELL, self.context.delete()).await;
        }
    }
}
