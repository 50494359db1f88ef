//! Client side of one MCP session with one server.
//!
//! A [`Session`] is a cheap handle. The session task owns the link and the table of pending requests. The session
//! ends when the last handle is dropped or the server disconnects; its end fails every pending request.

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

/// Timeout of one `logging/setLevel` request.
const LOG_LEVEL: Duration = Duration::from_secs(5);

/// Options for connecting a session.
#[derive(Clone)]
pub struct Options {
    /// Name and version sent as `clientInfo`.
    pub client: ClientInfo,
    /// Answers the requests that the server sends to the client.
    pub host: Arc<dyn Host>,
    /// Hint about the server's protocol era.
    pub era: EraHint,
    /// Timeout for starting the server, connecting and the handshake together.
    pub connect_timeout: Duration,
    /// Timeout of a request that has no deadline of its own.
    pub request_timeout: Duration,
    /// Members added to `_meta` of the handshake and, in the 2026-07-28 era, of every request.
    pub extra_meta: Option<Raw>,
    /// Maximum number of `input_required` rounds of one request.
    pub max_rounds: usize,
    /// Limits for reading a list.
    pub lists: ListLimits,
    /// How long closing the session waits for the link to end.
    pub close_grace: Duration,
    /// Aborts [`Session::connect`] when it becomes `true` or its sender is dropped; the abort first shuts down what
    /// was started. Dropping the future aborts too, but waits for nothing.
    pub quit: Option<watch::Receiver<bool>>,
}

/// Cheap, cloneable handle to a session.
#[derive(Clone, Debug)]
pub struct Session {
    wire: Wire,
    terms: Arc<Terms>,
    settings: Arc<Settings>,
    watching: Arc<Watching>,
}

/// Owner's handle to the session's tasks; waits for the session to end.
#[derive(Debug)]
pub struct SessionTask {
    tasks: JoinSet<()>,
    wire: wire::Ended,
}

/// Result of [`Session::connect`]: the handle, the owner's half and the feed of server notifications.
#[derive(Debug)]
pub struct Connected {
    /// Handle for making requests.
    pub session: Session,
    /// Handle for waiting until the session ends.
    pub task: SessionTask,
    /// Notifications from the server.
    pub news: NewsFeed,
}

/// Options that the session needs after connecting.
struct Settings {
    host: Arc<dyn Host>,
    request_timeout: Duration,
    max_rounds: usize,
    lists: ListLimits,
    /// Serialized `_meta` members that every request carries, if any.
    meta: Option<Vec<u8>>,
}

impl Options {
    /// Returns the default options, with a host that answers nothing.
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
    /// Waits until connecting is aborted through `quit`.
    async fn over(&self) {
        match self.quit.clone() {
            // A dropped sender counts as an abort.
            Some(mut quit) => drop(quit.wait_for(|quit| *quit).await),
            None => std::future::pending().await,
        }
    }
}

impl Session {
    /// Opens a link and negotiates the era with the server.
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

    /// Returns the result of the handshake.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Sends a request, answers the server's `input_required` results, and returns the complete result.
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
                    // Boxed, because this extra request is rare and would enlarge every future.
                    Box::pin(self.ask_for_logs(level, self.deadline(&request))).await;
                }
                self.exchange(request).await
            }
            // Boxed, so that the futures of legacy requests do not reserve space for it.
            Era::Modern => Box::pin(rounds::drive(self, request)).await,
        }
    }

    /// Sends a request once. In the 2026-07-28 era the result may be `input_required`.
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

    /// Sends `logging/setLevel` to a server of the handshake era. The level applies to the whole session and is only
    /// ever made more verbose, so other requests may receive more lines than they want; callers filter what they
    /// forward.
    async fn ask_for_logs(&self, level: LogLevel, deadline: Instant) {
        self.wire.shared().log_level.store(level as u8 + 1, Ordering::Release);
        let params = serde_json::json!({ "level": level.name() });
        let asked = Request::new("logging/setLevel").params(params.into());
        // A failure is ignored: the call itself works without a log level.
        let _ = self.exchange(asked.by(deadline.min(Instant::now() + LOG_LEVEL))).await;
    }

    fn logs_enough(&self, level: LogLevel, explicit: bool) -> bool {
        let told = self.wire.shared().log_level.load(Ordering::Acquire);
        let known = told.checked_sub(1).and_then(LogLevel::numbered);
        known.map_or(!explicit, |known| known <= level) || !self.terms.offers("logging", None)
    }

    /// Replaces the set of resources to subscribe to.
    pub fn watch(&self, uris: std::collections::BTreeSet<String>) {
        self.watching.want(uris);
    }

    /// Subscribes to all watched resources again, because the server lost its subscriptions.
    pub fn watch_again(&self) {
        self.watching.want_again();
    }

    /// Waits until the server has accepted or rejected the subscription to a resource.
    pub async fn is_watching(&self, uri: &str) -> Result<(), RpcError> {
        self.watching.settled(uri).await
    }

    /// Sends a notification.
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

    /// Returns whether the session has ended.
    pub fn is_over(&self) -> bool {
        self.wire.is_over()
    }

    /// Returns the number of requests that the session task holds without an answer, sent or queued.
    pub fn unanswered(&self) -> usize {
        self.wire.shared().unanswered.load(Ordering::Acquire)
    }

    fn deadline(&self, request: &Request) -> Instant {
        request.deadline.unwrap_or_else(|| Instant::now() + self.settings.request_timeout)
    }
}

impl SessionTask {
    /// Waits for the end of the session and returns how it ended.
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
