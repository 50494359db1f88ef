//! Servers reached by streamable HTTP.
//!
//! Every message is a POST of its own, and its answer comes in the response: as JSON, or as a stream of events that
//! ends with it. The link's task owns all exchanges under way; dropping one closes its stream.

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

/// How long a goodbye to the server may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it is.
    pub url: Url,
    /// What every request carries beside our own headers: credentials, for example.
    pub headers: HeaderMap,
    /// Who has the credentials that come and go.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Whether the server is told when we leave.
    pub terminate_on_close: bool,
    /// How long a stream of events may be silent; without it, only a request's deadline counts.
    pub read_timeout: Option<Duration>,
    /// The longest message it may send.
    pub frame_limit: usize,
    /// The connections, shared with other endpoints.
    pub client: Client,
}

/// What every exchange of a link needs.
#[derive(Debug)]
pub(crate) struct Context {
    endpoint: Endpoint,
    /// The short way, where there is one.
    lane: Option<Lane>,
    inbound: tokio::sync::mpsc::Sender<Inbound>,
    /// The session the server gave us; swapped whole.
    session: watch::Sender<Option<HeaderValue>>,
    /// The version agreed on in a handshake.
    version: OnceLock<std::borrow::Cow<'static, str>>,
    /// The `initialize` request, to be sent again when the server has lost the session.
    initialize: OnceLock<Outbound>,
}

struct Http {
    context: Arc<Context>,
    exchanges: JoinSet<Done>,
    running: HashMap<u64, AbortHandle>,
    standing: JoinSet<()>,
    /// An exchange that has to end before the next message may leave.
    barrier: Option<tokio::task::Id>,
    renewing: bool,
    /// Messages that met a lost session and wait for the new one.
    lost: Vec<Outbound>,
}

impl Endpoint {
    /// An endpoint without headers of its own.
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
            // The server must not hear of anything else before it has heard this.
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

    /// Opens the stream for what the server says unasked, in place of any earlier one.
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
