//! Client side of one MCP session with one server.
//!
//! A [`Session`] is a cheap handle. The session task owns the link and the table of pending requests. The session
//! ends when the last handle is dropped or the server disconnects; its end fails every pending request.

mod answers;
mod deadline;
mod evidence;
mod handshake;
mod hooks;
mod host;
mod listen;
pub(crate) mod meta;
mod news;
mod pages;
mod pending_requests;
mod request;
mod rounds;
mod send_once;
mod sender;
mod session_loop;
mod subscriptions;
mod task_client;
mod terms;

pub use crate::model::Listing;
use crate::{Disconnect, Failure, Opener, Outbound, Phase, Raw, RpcError, model::LogLevel};
use deadline::Deadline;
use hooks::RequestHooks;
pub use hooks::{Audience, OnLog, OnProgress, Progress};
pub use host::{Host, HostFuture, NoHost, Roots};
pub use meta::{ClientInfo, MetaKey};
pub use news::{News, NewsFeed};
pub use pages::{List, ListLimits};
pub use request::{Input, Request, TaskMode, TaskOperation};
use sender::RequestSender;
use std::{
    borrow::Cow,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use subscriptions::SubscriptionHandle;
pub(crate) use terms::{BATCHING, LEGACY};
pub use terms::{Era, EraHint, LATEST_LEGACY, MODERN, Terms, offers};
use tokio::{sync::watch, task::JoinSet, time::Instant};

/// Timeout of one `logging/setLevel` request.
const SET_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

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
    sender: RequestSender,
    terms: Arc<Terms>,
    settings: Arc<Settings>,
    subscriptions: Arc<SubscriptionHandle>,
}

/// Owner's handle to the session's tasks; waits for the session to end.
#[derive(Debug)]
pub struct SessionTask {
    tasks: JoinSet<()>,
    end: sender::SessionEnd,
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
    async fn wait_for_quit(&self) {
        match self.quit.clone() {
            // A dropped sender counts as an abort.
            Some(mut quit) => drop(quit.wait_for(|quit| *quit).await),
            None => std::future::pending().await,
        }
    }
}

/// A pending result of a session. Boxed, so it is compiled in this crate and not again in each crate that awaits it.
pub type SessionFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

impl Session {
    /// Opens a link and negotiates the era with the server.
    pub fn connect<'a>(opener: &'a dyn Opener, options: &'a Options) -> SessionFuture<'a, Connected> {
        Box::pin(Session::negotiate(opener, options))
    }

    async fn negotiate(opener: &dyn Opener, options: &Options) -> Result<Connected, Failure> {
        let negotiated = handshake::negotiate(opener, options).await?;
        let handshake::NegotiatedSession { sender, ended, mut tasks, news, terms } = negotiated;
        let terms = Arc::new(terms);
        let (subscriptions, list) = subscriptions::channel();
        match terms.era {
            Era::Modern => {
                tasks.spawn(listen::run(sender.weak(), list, meta::modern(options), terms.clone()))
            }
            Era::Legacy => tasks.spawn(subscriptions::run(sender.weak(), list, terms.clone())),
        };
        let settings = Arc::new(Settings {
            host: options.host.clone(),
            request_timeout: options.request_timeout,
            max_rounds: options.max_rounds,
            lists: options.lists,
            meta: meta::session_meta(&terms, options),
        });
        let session = Session { sender, terms, settings, subscriptions: Arc::new(subscriptions) };
        Ok(Connected { session, task: SessionTask { tasks, end: ended }, news })
    }

    /// Returns the result of the handshake.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Sends a request, answers the server's `input_required` results, and returns the complete result.
    ///
    /// A tool call may become a task. The request's [`TaskMode`] says who waits for its result.
    pub async fn request(&self, request: Request) -> Result<Raw, Failure> {
        match self.terms.era {
            // Boxed, so that the futures of other requests do not reserve space for it.
            _ if request.task_operation.is_some() => Box::pin(task_client::operate(self, request)).await,
            Era::Legacy if task_client::becomes_task(self, &request) => {
                Box::pin(task_client::call_as_task(self, request)).await
            }
            Era::Legacy if request.input.as_ref().is_some_and(|it| it.state.is_some()) => {
                let why = "the call of this `requestState` has ended";
                Err(Failure::rpc(RpcError::new(RpcError::INVALID_PARAMS, why)))
            }
            Era::Legacy => {
                if let Some((level, explicit)) = request.logs.as_ref().map(|it| (it.level, it.explicit))
                    && !self.has_log_level(level, explicit)
                {
                    // Boxed, because this extra request is rare and would enlarge every future.
                    Box::pin(self.set_log_level(level, self.deadline(&request))).await;
                }
                self.exchange(request).await
            }
            // Boxed, so that the futures of legacy requests do not reserve space for it.
            Era::Modern => Box::pin(rounds::run_rounds(self, request)).await,
        }
    }

    /// Sends a request once. In the 2026-07-28 era the result may be `input_required`.
    pub async fn exchange(&self, request: Request) -> Result<Raw, Failure> {
        let deadline = self.deadline(&request);
        let Request {
            method,
            params,
            idle_timeout,
            on_progress,
            name,
            header_params,
            meta,
            logs,
            host,
            audience,
            ..
        } = request;
        let deadline = idle_timeout.map_or_else(
            || Deadline::from(deadline),
            |idle_timeout| Deadline::with_idle_timeout(idle_timeout, deadline),
        );
        let on_progress = deadline.extend_on_progress(on_progress);
        let id = self.sender.next_id();
        let token = on_progress.is_some().then_some(id);
        let forwarded = meta::forwarded(meta.as_ref(), self.terms.era, logs.as_ref().map(|it| it.level));
        let params = meta::with_meta(params, forwarded.as_ref(), self.settings.meta.as_deref(), token);
        let routing = self.terms.routing(name, header_params);
        let message = Outbound::Request { id, method, params, routing };
        let (on_log, extension) = (logs.map(|it| it.callback), deadline.extension());
        let hooks = RequestHooks { on_progress, on_log, host, extension, on_ack: None, audience };
        self.sender.exchange_directly(message, deadline, hooks).await
    }

    /// Sends a request and ignores the response. Does not wait, so that a destructor can call it; the request is lost
    /// if the session task is far behind.
    fn send_and_forget(&self, method: &'static str, params: Raw, name: String, caller_meta: Option<&Raw>) {
        let forwarded = meta::forwarded(caller_meta, self.terms.era, None);
        let params = meta::with_meta(Some(params), forwarded.as_ref(), self.settings.meta.as_deref(), None);
        let (id, routing) = (self.sender.next_id(), self.terms.routing(Some(name), Vec::new()));
        self.sender.try_send(Outbound::Request { id, method: method.into(), params, routing });
    }

    /// Sends `logging/setLevel` to a server of the handshake era. The level applies to the whole session and is only
    /// ever made more verbose, so other requests may receive more lines than they want; callers filter what they
    /// forward.
    async fn set_log_level(&self, level: LogLevel, deadline: Instant) {
        self.sender.shared().log_level.store(level as u8 + 1, Ordering::Release);
        let params = serde_json::json!({ "level": level.name() });
        let request = Request::new("logging/setLevel").params(params.into());
        // A failure is ignored: the call itself works without a log level.
        let _ = self.exchange(request.deadline(deadline.min(Instant::now() + SET_LEVEL_TIMEOUT))).await;
    }

    fn has_log_level(&self, level: LogLevel, explicit: bool) -> bool {
        let sent = self.sender.shared().log_level.load(Ordering::Acquire);
        let known = sent.checked_sub(1).and_then(LogLevel::numbered);
        known.map_or(!explicit, |known| known <= level) || !self.terms.offers("logging", None)
    }

    /// Replaces the set of resources to subscribe to.
    pub fn watch(&self, uris: std::collections::BTreeSet<String>) {
        self.subscriptions.set_wanted(uris);
    }

    /// Subscribes to all watched resources again, because the server lost its subscriptions.
    pub fn resubscribe(&self) {
        self.subscriptions.resubscribe();
    }

    /// Waits until the server has accepted or rejected the subscription to a resource.
    pub async fn is_watching(&self, uri: &str) -> Result<(), RpcError> {
        self.subscriptions.wait_for_decision(uri).await
    }

    /// Sends a notification.
    pub async fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: Option<Raw>,
    ) -> Result<(), Failure> {
        let params = meta::with_meta(params, None, self.settings.meta.as_deref(), None);
        let routing = self.terms.routing(None, Vec::new());
        self.sender.notify(Outbound::Notification { method: method.into(), params, routing }).await
    }

    /// Reads a whole list, page by page.
    pub fn list(&self, list: List) -> SessionFuture<'_, Listing> {
        Box::pin(
            async move { pages::read(self, list).await.map_err(|failure| failure.during(Phase::Listing)) },
        )
    }

    /// Returns whether the session has ended.
    pub fn is_over(&self) -> bool {
        self.sender.is_over()
    }

    /// Returns whether the server can send requests to the client: only in the handshake era, and over HTTP only in a
    /// session.
    pub fn takes_server_requests(&self) -> bool {
        self.terms.era == Era::Legacy && !self.sender.shared().stateless.load(Ordering::Acquire)
    }

    /// Returns the number of requests without an answer, sent or queued.
    pub fn unanswered(&self) -> usize {
        self.sender.shared().pending.len()
    }

    fn deadline(&self, request: &Request) -> Instant {
        request.deadline.unwrap_or_else(|| Instant::now() + self.settings.request_timeout)
    }
}

impl SessionTask {
    /// Waits for the end of the session and returns how it ended.
    pub async fn join(mut self) -> Arc<Disconnect> {
        while self.tasks.join_next().await.is_some() {}
        self.end.disconnect()
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
