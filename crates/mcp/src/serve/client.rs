//! The handler's view of the client while it answers one request, and the client state that lasts between requests.

mod client_ref;

use super::{
    MessageSender, announcements::DirectSender, request_params::RequestMeta, watched::ResourceSubscription,
};
use crate::{
    News, Outbound, Raw, Routing, RpcError,
    model::LogLevel,
    session::{Era, MetaKey},
};
pub use client_ref::ClientRef;
use serde_json::json;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};
use tokio::sync::oneshot;

/// Maximum number of resources that one client may subscribe to.
const MAX_WATCHED_RESOURCES: usize = 1_000;

/// Protocol version, capabilities and identity that a client declared.
#[derive(Clone, Debug)]
pub struct ClientTerms {
    /// Protocol era of the client.
    pub era: Era,
    /// Negotiated protocol version.
    pub version: String,
    /// Client capabilities, as an object.
    pub capabilities: Raw,
    /// Client name and version (`clientInfo`), as an object.
    pub info: Option<Raw>,
    /// Cached result of [`ClientTerms::as_meta`].
    pub(crate) as_meta: OnceLock<Raw>,
}

impl ClientTerms {
    /// Returns capabilities and identity as the `_meta` members of a 2026-07-28 request.
    pub fn as_meta(&self) -> &Raw {
        self.as_meta.get_or_init(|| {
            let meta = Raw::empty_object().with(MetaKey::CAPABILITIES, &self.capabilities);
            self.info.as_ref().map_or(meta.clone(), |info| meta.with(MetaKey::CLIENT, info))
        })
    }
}

/// Handle that a handler uses to reach the client during one request.
#[derive(Clone, Debug)]
pub struct Client {
    terms: Arc<ClientTerms>,
    peer: Arc<Peer>,
    out: MessageSender,
    meta: Option<Raw>,
    progress_token: Option<Raw>,
    log_level: Option<LogLevel>,
    id: Raw,
}

/// The number of the next [`Peer`].
static NEXT_PEER: AtomicU64 = AtomicU64::new(1);

/// State of one client that outlives a single request.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Identifies the client in this process.
    pub(crate) number: u64,
    /// Reaches the client's notification stream, once it has opened one over HTTP.
    pub(crate) direct: OnceLock<DirectSender>,
    pub(crate) terms: OnceLock<Arc<ClientTerms>>,
    /// Log level set by the client, plus one; 0 if it set none.
    log_level: AtomicU8,
    watches: Mutex<Vec<ResourceSubscription>>,
    next_id: AtomicU64,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>>,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            number: NEXT_PEER.fetch_add(1, Ordering::Relaxed),
            direct: OnceLock::new(),
            terms: OnceLock::new(),
            log_level: AtomicU8::new(0),
            watches: Mutex::default(),
            next_id: AtomicU64::new(1),
            pending: Mutex::default(),
        }
    }
}

impl Peer {
    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8 + 1, Ordering::Relaxed);
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.log_level.load(Ordering::Relaxed).checked_sub(1).and_then(LogLevel::numbered)
    }

    /// Adds a resource subscription. Does nothing if the client is already subscribed to this URI.
    pub(crate) fn watch(&self, subscription: ResourceSubscription) -> Result<(), RpcError> {
        let mut watches = self.watches();
        if watches.iter().any(|it| it.uri() == subscription.uri()) {
            return Ok(());
        }
        if watches.len() >= MAX_WATCHED_RESOURCES {
            return Err(RpcError::new(RpcError::INVALID_REQUEST, "too many resources are subscribed to"));
        }
        watches.push(subscription);
        Ok(())
    }

    /// Returns the URIs of all subscribed resources.
    pub(crate) fn watched(&self) -> BTreeSet<String> {
        self.watches().iter().map(|it| it.uri().to_owned()).collect()
    }

    /// Sets the first id for requests that the server sends to this client.
    pub(crate) fn start_numbers_at(&self, number: u64) {
        self.next_id.store(number, Ordering::Relaxed);
    }

    /// Removes a resource subscription. Fails if there is none.
    pub(crate) fn unwatch(&self, uri: &str) -> Result<(), RpcError> {
        let mut watches = self.watches();
        let before = watches.len();
        watches.retain(|it| it.uri() != uri);
        let what = "the client is not subscribed to this resource";
        if watches.len() < before { Ok(()) } else { Err(RpcError::new(RpcError::INVALID_PARAMS, what)) }
    }

    /// Checks whether a handshake-era client should receive this notification.
    ///
    /// Always false for 2026-07-28 clients: they subscribe with `subscriptions/listen`.
    pub(crate) fn should_receive(&self, news: &News) -> bool {
        if self.terms.get().is_none_or(|terms| terms.era != Era::Legacy) {
            return false;
        }
        match news {
            News::ResourceUpdated(uri) => self.watches().iter().any(|it| it.uri() == uri),
            // A log line outside any request goes only to clients that have set a log level.
            News::Log(line) => self.log_level().is_some_and(|wanted| LogLevel::of(line) >= Some(wanted)),
            News::ToolsChanged | News::PromptsChanged | News::ResourcesChanged => true,
            News::Renewed | News::LogOfCall(_) | News::ElicitationComplete(_) => false,
        }
    }

    fn watches(&self) -> MutexGuard<'_, Vec<ResourceSubscription>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the client's response to the pending [`Client::ask`] with this id.
    pub(crate) fn answered(&self, id: Option<u64>, outcome: Result<Raw, RpcError>) {
        let reply = id.and_then(|id| self.pending().remove(&id));
        if let Some(reply) = reply {
            let _ = reply.send(outcome);
        }
    }

    /// Registers a request to the client. Returns its id, the receiver of the response, and a guard that removes it.
    fn register_request(&self) -> (u64, oneshot::Receiver<Result<Raw, RpcError>>, ForgetPendingRequest<'_>) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.pending().insert(id, reply);
        (id, answer, ForgetPendingRequest { id, peer: self })
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    pub(super) fn new(
        terms: Arc<ClientTerms>,
        peer: Arc<Peer>,
        out: MessageSender,
        meta: Option<RequestMeta>,
        id: Raw,
    ) -> Client {
        let asked: Option<String> = meta.as_ref().and_then(|meta| meta.log_level.as_ref()?.decode().ok());
        let log_level = match terms.era {
            Era::Legacy => peer.log_level(),
            Era::Modern => asked.and_then(|name| LogLevel::named(&name)),
        };
        let (meta, progress_token) = meta.map(|meta| (meta.raw, meta.progress_token)).unzip();
        let progress_token = progress_token.flatten();
        Client { terms, peer, out, meta, progress_token, log_level, id }
    }

    /// Returns the JSON-RPC id of the request, a number or a string.
    pub fn request_id(&self) -> &Raw {
        &self.id
    }

    /// Identifies the client between its requests, as long as its session lasts.
    pub(super) fn session(&self) -> Weak<Peer> {
        Arc::downgrade(&self.peer)
    }

    /// Returns `_meta` of the request.
    pub fn meta(&self) -> Option<&Raw> {
        self.meta.as_ref()
    }

    /// Returns the minimum level of log lines for this client, and whether the client set it.
    ///
    /// A handshake-era client that set no level gets the server's default. A 2026-07-28 client that set none gets no
    /// log lines.
    pub fn logs(&self) -> Option<(LogLevel, bool)> {
        match self.log_level {
            Some(level) => Some((level, true)),
            None => (self.terms.era == Era::Legacy).then_some((LogLevel::Info, false)),
        }
    }

    /// Returns the version, capabilities and identity that the client declared.
    pub fn terms(&self) -> &ClientTerms {
        &self.terms
    }

    /// Checks whether the client declared this capability, such as `sampling`.
    pub fn offers(&self, capability: &str) -> bool {
        self.terms.capabilities.member(capability).is_some()
    }

    /// Checks whether the request has a progress token.
    pub fn has_progress_token(&self) -> bool {
        self.progress_token.is_some()
    }

    /// Sends a progress notification, if the request has a progress token.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.progress_token else { return };
        let mut params = json!({ "progressToken": token, "progress": progress });
        total.into_iter().for_each(|total| params["total"] = total.into());
        message.into_iter().for_each(|message| params["message"] = message.into());
        self.notify("notifications/progress", Some(params.into())).await;
    }

    /// Sends a log line, if the client's log level allows it.
    pub async fn log(&self, level: LogLevel, logger: Option<&str>, data: Raw) {
        if !self.allows_log_level(level) {
            return;
        }
        let mut params = json!({ "level": level.name(), "data": data });
        logger.into_iter().for_each(|logger| params["logger"] = logger.into());
        self.notify("notifications/message", Some(params.into())).await;
    }

    /// Forwards a log line from another server, if the client's log level allows it. `line` holds the parameters of
    /// `notifications/message`.
    pub async fn forward_log(&self, line: Raw) {
        if LogLevel::of(&line).is_some_and(|level| self.allows_log_level(level)) {
            self.notify("notifications/message", Some(line)).await;
        }
    }

    fn allows_log_level(&self, level: LogLevel) -> bool {
        self.log_level.map_or(self.terms.era == Era::Legacy, |wanted| level >= wanted)
    }

    /// Sends a notification as part of this request.
    pub async fn notify(&self, method: &'static str, params: Option<Raw>) {
        let routing = Routing::default();
        // A failed send means that the client has disconnected.
        let message = Outbound::Notification { method: method.into(), params, routing };
        let _ = self.out.send(Box::new(message)).await;
    }

    /// Sends a request to a handshake-era client and waits for its response.
    ///
    /// Fails for 2026-07-28 clients: there a handler asks for input in its result.
    pub async fn ask(&self, method: &'static str, params: Option<Raw>) -> Result<Raw, RpcError> {
        if self.terms.era == Era::Modern {
            return Err(RpcError::new(
                RpcError::INVALID_REQUEST,
                "clients of this version take no requests; return `input_required` instead",
            ));
        }
        let (id, answer, _forget) = self.peer.register_request();
        let request = Outbound::Request { id, method: method.into(), params, routing: Routing::default() };
        self.out.send(Box::new(request)).await.map_err(|_| disconnected())?;
        answer.await.map_err(|_| disconnected())?
    }

    /// Returns a number that identifies the client in this process.
    pub fn number(&self) -> u64 {
        self.peer.number
    }

    /// Returns a handle for messages to the client after this request.
    pub fn downgrade(&self) -> ClientRef {
        ClientRef::new(&self.peer, Some(&self.out))
    }
}

fn disconnected() -> RpcError {
    RpcError::new(RpcError::INTERNAL, "the client disconnected")
}

/// Removes a pending request to the client when [`Client::ask`] ends or is dropped.
struct ForgetPendingRequest<'a> {
    id: u64,
    peer: &'a Peer,
}

impl Drop for ForgetPendingRequest<'_> {
    fn drop(&mut self) {
        self.peer.pending().remove(&self.id);
    }
}
