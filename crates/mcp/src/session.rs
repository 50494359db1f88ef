//! The client's side of one conversation with one server.
//!
//! A [`Session`] is a cheap handle; the conversation's task owns the link and the table of unanswered requests. The
//! conversation ends when the last handle is dropped or the server goes away, and its end answers every waiter.

mod answers;
mod conversation;
mod departure;
mod evidence;
mod handshake;
mod host;
mod listen;
pub(crate) mod meta;
mod news;
mod pages;
mod rounds;
mod terms;
mod until;
mod wire;

use crate::{Failure, Goodbye, Opener, Outbound, Phase, Raw};
pub use host::{Answering, Host, NoHost, Roots};
pub use meta::{ClientInfo, MetaKey};
pub use news::{News, NewsFeed};
pub use pages::{List, ListLimits, Listing};
use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
pub(crate) use terms::{BATCHING, LEGACY};
pub use terms::{Era, EraHint, LATEST_LEGACY, MODERN, Terms};
use tokio::{sync::watch, task::JoinSet, time::Instant};
use until::Until;
use wire::Wire;
pub use wire::{OnProgress, Progress};

/// How a session is begun.
#[derive(Clone)]
pub struct Options {
    /// Who we say we are.
    pub client: ClientInfo,
    /// Who answers what the server asks.
    pub host: Arc<dyn Host>,
    /// What is known about the server's era.
    pub era: EraHint,
    /// How long starting, reaching and agreeing may take together.
    pub connect_timeout: Duration,
    /// How long a request without a deadline of its own may take.
    pub request_timeout: Duration,
    /// Members added to `_meta` of the handshake and, in the 2026-07-28 era, of every request.
    pub extra_meta: Option<Raw>,
    /// How often a server may ask for more input before one request is given up.
    pub max_rounds: usize,
    /// The bounds of a list.
    pub lists: ListLimits,
    /// How long a closing link is waited for.
    pub close_grace: Duration,
    /// Says when beginning is not worth it any more: it is then given up, and what was started is ended first. Dropping
    /// [`Session::connect`] ends it too, but waits for nothing.
    pub quit: Option<watch::Receiver<bool>>,
}

/// A handle to a conversation.
#[derive(Clone, Debug)]
pub struct Session {
    wire: Wire,
    terms: Arc<Terms>,
    settings: Arc<Settings>,
}

/// The owner's half of a session: waits for the conversation to end.
#[derive(Debug)]
pub struct SessionTask {
    tasks: JoinSet<()>,
    wire: wire::Ended,
}

/// A session, its owner's half, and what the server says unasked.
#[derive(Debug)]
pub struct Connected {
    /// The handle.
    pub session: Session,
    /// The owner's half.
    pub task: SessionTask,
    /// What the server says unasked.
    pub news: NewsFeed,
}

/// One request.
pub struct Request {
    method: Cow<'static, str>,
    params: Option<Raw>,
    deadline: Option<Instant>,
    quiet: Option<Duration>,
    on_progress: Option<OnProgress>,
    name: Option<String>,
    header_params: Vec<(String, String)>,
}

/// What a session keeps of its [`Options`].
struct Settings {
    host: Arc<dyn Host>,
    request_timeout: Duration,
    max_rounds: usize,
    lists: ListLimits,
    /// The members of `_meta` that every request carries, if any.
    meta: Option<Vec<u8>>,
}

impl Options {
    /// The usual settings, with a host that answers nothing.
    pub fn new(client: ClientInfo) -> Options {
        Options {
            client,
            host: Arc::new(NoHost),
            era: EraHint::Auto,
            connect_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(60),
            extra_meta: None,
            max_rounds: 10,
            lists: ListLimits::default(),
            close_grace: Duration::from_secs(7),
            quit: None,
        }
    }
}

impl Options {
    /// Waits until it is not worth it any more.
    async fn over(&self) {
        match self.quit.clone() {
            // Whoever could say so and is gone has said so.
            Some(mut quit) => drop(quit.wait_for(|quit| *quit).await),
            None => std::future::pending().await,
        }
    }
}

impl Session {
    /// Opens a link and agrees with the server on an era.
    pub async fn connect(opener: &dyn Opener, options: &Options) -> Result<Connected, Failure> {
        let agreed = handshake::agree(opener, options).await?;
        let handshake::Agreed { wire, ended, mut tasks, news, terms } = agreed;
        let terms = Arc::new(terms);
        if let Some(filter) = listen::filter(&terms) {
            tasks.spawn(listen::run(wire.weak(), filter, options.clone(), terms.clone()));
        }
        let settings = Arc::new(Settings {
            host: options.host.clone(),
            request_timeout: options.request_timeout,
            max_rounds: options.max_rounds,
            lists: options.lists,
            meta: meta::standing(&terms, options),
        });
        let session = Session { wire, terms, settings };
        Ok(Connected { session, task: SessionTask { tasks, wire: ended }, news })
    }

    /// What was agreed with the server.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Asks, answers what the server wants to know in between, and returns the complete result.
    pub async fn request(&self, request: Request) -> Result<Raw, Failure> {
        match self.terms.era {
            Era::Legacy => self.exchange(request).await,
            Era::Modern => rounds::drive(self, request).await,
        }
    }

    /// Asks once. In the 2026-07-28 era the result may be a demand for more input.
    pub async fn exchange(&self, request: Request) -> Result<Raw, Failure> {
        let deadline = self.deadline(&request);
        let Request { method, params, quiet, on_progress, name, header_params, .. } = request;
        let until = quiet.map_or_else(|| Until::from(deadline), |quiet| Until::quiet_for(quiet, deadline));
        let on_progress = until.listening(on_progress);
        let id = self.wire.next_id();
        let token = on_progress.is_some().then_some(id);
        let params = meta::with_meta(params, self.settings.meta.as_deref(), token);
        let routing = self.terms.routing(name, header_params);
        let message = Outbound::Request { id, method, params, routing };
        self.wire.exchange(message, until, on_progress).await
    }

    /// Says something that needs no answer.
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Option<Raw>,
    ) -> Result<(), Failure> {
        let params = meta::with_meta(params, self.settings.meta.as_deref(), None);
        let routing = self.terms.routing(None, Vec::new());
        self.wire.notify(Outbound::Notification { method: method.into(), params, routing }).await
    }

    /// Reads a whole list, page by page.
    pub async fn list(&self, list: List) -> Result<Listing, Failure> {
        pages::read(self, list).await.map_err(|failure| failure.during(Phase::Listing))
    }

    /// Whether the conversation is over.
    pub fn is_over(&self) -> bool {
        self.wire.is_over()
    }

    /// How many requests the server has been asked, or is about to be, and has not answered.
    pub fn unanswered(&self) -> usize {
        self.wire.shared().unanswered.load(Ordering::Acquire)
    }

    fn deadline(&self, request: &Request) -> Instant {
        request.deadline.unwrap_or_else(|| Instant::now() + self.settings.request_timeout)
    }
}

impl SessionTask {
    /// Waits for the end of the conversation and says how it ended.
    pub async fn join(mut self) -> Arc<Goodbye> {
        while self.tasks.join_next().await.is_some() {}
        self.wire.goodbye()
    }
}

impl Request {
    /// A request for `method`.
    pub fn new(method: impl Into<Cow<'static, str>>) -> Request {
        Request {
            method: method.into(),
            params: None,
            deadline: None,
            quiet: None,
            on_progress: None,
            name: None,
            header_params: Vec::new(),
        }
    }

    /// A call of the tool `name`; `arguments` is an object.
    pub fn call_tool(name: &str, arguments: Option<&Raw>) -> Request {
        Request::named("tools/call", "name", name, arguments)
    }

    /// The prompt `name`, filled in.
    pub fn get_prompt(name: &str, arguments: Option<&Raw>) -> Request {
        Request::named("prompts/get", "name", name, arguments)
    }

    /// The contents of a resource.
    pub fn read_resource(uri: &str) -> Request {
        Request::named("resources/read", "uri", uri, None)
    }

    fn named(method: &'static str, key: &str, name: &str, arguments: Option<&Raw>) -> Request {
        let arguments = arguments.map(Raw::as_bytes);
        let params = meta::object(
            [(key, meta::string(name).as_slice())]
                .into_iter()
                .chain(arguments.map(|arguments| ("arguments", arguments))),
        );
        Request { name: Some(name.to_owned()), ..Request::new(method) }.params(params)
    }

    /// With these parameters: an object.
    #[must_use]
    pub fn params(mut self, params: Raw) -> Request {
        self.params = Some(params);
        self
    }

    /// To be answered by then.
    #[must_use]
    pub fn by(mut self, deadline: Instant) -> Request {
        self.deadline = Some(deadline);
        self
    }

    /// To be given up after this much silence: progress is not silence. Never later than its deadline.
    #[must_use]
    pub fn quiet_for(mut self, quiet: Duration) -> Request {
        self.quiet = Some(quiet);
        self
    }

    /// With this told about progress, in order and before the answer. It runs in the conversation's task and must
    /// not block.
    #[must_use]
    pub fn on_progress(mut self, told: impl FnMut(Progress) + Send + 'static) -> Request {
        self.on_progress = Some(Box::new(told));
        self
    }

    /// With these arguments repeated in `Mcp-Param-*` headers, over HTTP in the 2026-07-28 era.
    #[must_use]
    pub fn header_params(mut self, params: Vec<(String, String)>) -> Request {
        self.header_params = params;
        self
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("client", &self.client)
            .field("era", &self.era)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
