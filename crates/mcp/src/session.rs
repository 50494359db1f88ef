//! The client's side of one conversation with one server.
//!
//! A [`Session`] is a cheap handle; the conversation's task owns the link and the table of unanswered requests. The
//! conversation ends when the last handle is dropped or the server goes away, and its end answers every waiter.

mod answers;
mod conversation;
mod departure;
mod ears;
mod evidence;
mod handshake;
mod host;
mod listen;
pub(crate) mod meta;
mod news;
mod pages;
mod request;
mod rounds;
mod terms;
mod until;
mod watching;
mod wire;

use crate::{Failure, Goodbye, Opener, Outbound, Phase, Raw, RpcError, model::LogLevel};
use ears::Ears;
pub use ears::{OnLog, OnProgress, Progress};
pub use host::{Answering, Host, NoHost, Roots};
pub use meta::{ClientInfo, MetaKey};
pub use news::{News, NewsFeed};
pub use pages::{List, ListLimits, Listing};
pub use request::{Input, Request};
use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
pub(crate) use terms::{BATCHING, LEGACY};
pub use terms::{Era, EraHint, LATEST_LEGACY, MODERN, Terms};
use tokio::{sync::watch, task::JoinSet, time::Instant};
use until::Until;
use watching::Watching;
use wire::Wire;

/// How long a server may take over a new log level.
const LOG_LEVEL: Duration = Duration::from_secs(5);

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
    watching: Arc<Watching>,
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
        let (watching, list) = watching::list();
        match terms.era {
            Era::Modern => tasks.spawn(listen::run(wire.weak(), list, meta::modern(options), terms.clone())),
            Era::Legacy => tasks.spawn(watching::run(wire.weak(), list, terms.clone())),
        };
        let settings = Arc::new(Settings {
            host: options.host.clone(),
            request_timeout: options.request_timeout,
            max_rounds: options.max_rounds,
            lists: options.lists,
            meta: meta::standing(&terms, options),
        });
        let session = Session { wire, terms, settings, watching: Arc::new(watching) };
        Ok(Connected { session, task: SessionTask { tasks, wire: ended }, news })
    }

    /// What was agreed with the server.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Asks, answers what the server wants to know in between, and returns the complete result.
    pub async fn request(&self, request: Request) -> Result<Raw, Failure> {
        match self.terms.era {
            Era::Legacy if request.input.as_ref().is_some_and(|it| it.state.is_some()) => {
                let over = "the call that `requestState` means is over";
                Err(Failure::rpc(RpcError::new(RpcError::INVALID_PARAMS, over)))
            }
            Era::Legacy => {
                if let Some((level, explicit)) = request.logs.as_ref().map(|it| (it.level, it.explicit))
                    && !self.logs_enough(level, explicit)
                {
                    // Boxed, because it is a request of its own, and hardly ever made.
                    Box::pin(self.ask_for_logs(level, self.deadline(&request))).await;
                }
                self.exchange(request).await
            }
            // Boxed, so that a request of the other era does not make room for it.
            Era::Modern => Box::pin(rounds::drive(self, request)).await,
        }
    }

    /// Asks once. In the 2026-07-28 era the result may be a demand for more input.
    pub async fn exchange(&self, request: Request) -> Result<Raw, Failure> {
        let deadline = self.deadline(&request);
        let Request { method, params, quiet, on_progress, name, header_params, meta, logs, host, .. } =
            request;
        let until = quiet.map_or_else(|| Until::from(deadline), |quiet| Until::quiet_for(quiet, deadline));
        let on_progress = until.listening(on_progress);
        let id = self.wire.next_id();
        let token = on_progress.is_some().then_some(id);
        let carried = meta::carried(meta.as_ref(), self.terms.era, logs.as_ref().map(|it| it.level));
        let params = meta::with_meta(params, carried.as_ref(), self.settings.meta.as_deref(), token);
        let routing = self.terms.routing(name, header_params);
        let message = Outbound::Request { id, method, params, routing };
        let (on_log, patience) = (logs.map(|it| it.told), until.stretch());
        let ears = Ears { on_progress, on_log, host, patience, on_ack: None };
        self.wire.exchange(message, until, ears).await
    }

    /// Has a server of the handshake era log as much as this request wants to hear. What others hear is never lessened by
    /// it, so they hear more, and whoever passes it on has to leave some out.
    async fn ask_for_logs(&self, level: LogLevel, deadline: Instant) {
        self.wire.shared().log_level.store(level as u8 + 1, Ordering::Release);
        let params = serde_json::json!({ "level": level.name() });
        let asked = Request::new("logging/setLevel").params(params.into());
        // A server that does not care for levels may still be called.
        let _ = self.exchange(asked.by(deadline.min(Instant::now() + LOG_LEVEL))).await;
    }

    fn logs_enough(&self, level: LogLevel, explicit: bool) -> bool {
        let told = self.wire.shared().log_level.load(Ordering::Acquire);
        let known = told.checked_sub(1).and_then(LogLevel::numbered);
        known.map_or(!explicit, |known| known <= level) || !self.terms.offers("logging", None)
    }

    /// From now on, hears of changes of these resources and of no others.
    pub fn watch(&self, uris: std::collections::BTreeSet<String>) {
        self.watching.want(uris);
    }

    /// Asks for all of them again: the server has forgotten.
    pub fn watch_again(&self) {
        self.watching.want_again();
    }

    /// Waits until changes of a resource are heard of, or the server will not have it.
    pub async fn is_watching(&self, uri: &str) -> Result<(), RpcError> {
        self.watching.settled(uri).await
    }

    /// Says something that needs no answer.
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Option<Raw>,
    ) -> Result<(), Failure> {
        let params = meta::with_meta(params, None, self.settings.meta.as_deref(), None);
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
