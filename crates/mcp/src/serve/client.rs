//! The client, as a handler sees it while it answers one request.

use super::{mailbox, watched::Hold};
use crate::{
    News, Outbound, Raw, Routing, RpcError,
    model::LogLevel,
    session::{Era, MetaKey},
};
use serde_json::json;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};
use tokio::sync::oneshot;

/// How many resources one client may subscribe to.
const WATCHES: usize = 1_000;

/// What a client said about itself.
#[derive(Clone, Debug)]
pub struct ClientTerms {
    /// The era it speaks.
    pub era: Era,
    /// The protocol version.
    pub version: String,
    /// What it can do, as an object.
    pub capabilities: Raw,
    /// Who it is.
    pub info: Option<Raw>,
    /// The same as members of `_meta`, once somebody has wanted that.
    pub(crate) as_meta: OnceLock<Raw>,
}

impl ClientTerms {
    /// What the client can do and who it is, as a request of the 2026-07-28 era says it in `_meta`.
    pub fn as_meta(&self) -> &Raw {
        self.as_meta.get_or_init(|| {
            let said = Raw::empty_object().with(MetaKey::CAPABILITIES, &self.capabilities);
            self.info.as_ref().map_or(said.clone(), |info| said.with(MetaKey::CLIENT, info))
        })
    }
}

/// The way back to the client during one request.
#[derive(Clone, Debug)]
pub struct Client {
    terms: Arc<ClientTerms>,
    peer: Arc<Peer>,
    out: mailbox::Sender<Outbound>,
    meta: Option<Raw>,
    progress_token: Option<Raw>,
    log_level: Option<LogLevel>,
    id: Raw,
}

/// What lasts from one request of a client to the next.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) terms: OnceLock<Arc<ClientTerms>>,
    /// The level it has set, plus one; 0 if none.
    log_level: AtomicU8,
    watches: Mutex<Vec<Hold>>,
    next_id: AtomicU64,
    asks: Mutex<HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>>,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            terms: OnceLock::new(),
            log_level: AtomicU8::new(0),
            watches: Mutex::default(),
            next_id: AtomicU64::new(1),
            asks: Mutex::default(),
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

    /// The client wants to hear of a resource from now on.
    pub(crate) fn watch(&self, hold: Hold) -> Result<(), RpcError> {
        let mut watches = self.watches();
        if watches.iter().any(|it| it.uri() == hold.uri()) {
            return Ok(());
        }
        if watches.len() >= WATCHES {
            return Err(RpcError::new(RpcError::INVALID_REQUEST, "too many resources are subscribed to"));
        }
        watches.push(hold);
        Ok(())
    }

    /// The resources that it wants to hear of.
    pub(crate) fn watched(&self) -> BTreeSet<String> {
        self.watches().iter().map(|it| it.uri().to_owned()).collect()
    }

    /// From here on what it is asked is numbered.
    pub(crate) fn number_from(&self, number: u64) {
        self.next_id.store(number, Ordering::Relaxed);
    }

    pub(crate) fn unwatch(&self, uri: &str) {
        self.watches().retain(|it| it.uri() != uri);
    }

    /// Whether a client of the handshake era is told this.
    pub(crate) fn wants(&self, news: &News) -> bool {
        if self.terms.get().is_none_or(|terms| terms.era != Era::Legacy) {
            return false;
        }
        match news {
            News::ResourceUpdated(uri) => self.watches().iter().any(|it| it.uri() == uri),
            // What belongs to no request is told to those who have said how much they want to hear.
            News::Log(line) => self.log_level().is_some_and(|wanted| LogLevel::of(line) >= Some(wanted)),
            News::ToolsChanged | News::PromptsChanged | News::ResourcesChanged => true,
            News::Renewed | News::LogOfCall(_) => false,
        }
    }

    fn watches(&self) -> MutexGuard<'_, Vec<Hold>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the client's answer to whoever asked.
    pub(crate) fn answered(&self, id: Option<u64>, outcome: Result<Raw, RpcError>) {
        let waiting = id.and_then(|id| self.asks().remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(outcome);
        }
    }

    fn asks(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    pub(crate) fn new(
        terms: Arc<ClientTerms>,
        peer: Arc<Peer>,
        out: mailbox::Sender<Outbound>,
        meta: Option<&Raw>,
        id: Raw,
    ) -> Client {
        let asked: Option<String> = meta.and_then(|meta| meta.member(MetaKey::LOG_LEVEL)?.decode().ok());
        let log_level = match terms.era {
            Era::Legacy => peer.log_level(),
            Era::Modern => asked.and_then(|name| LogLevel::named(&name)),
        };
        let progress_token = meta.and_then(|meta| meta.member("progressToken"));
        Client { terms, peer, out, meta: meta.cloned(), progress_token, log_level, id }
    }

    /// What the client calls the request: a number or a string.
    pub fn request_id(&self) -> &Raw {
        &self.id
    }

    /// What the request says about itself and whoever made it.
    pub fn meta(&self) -> Option<&Raw> {
        self.meta.as_ref()
    }

    /// From which level on the client wants log lines, and whether it said so: in the handshake era one that says nothing
    /// leaves it to the server, in the other it wants none.
    pub fn logs(&self) -> Option<(LogLevel, bool)> {
        match self.log_level {
            Some(level) => Some((level, true)),
            None => (self.terms.era == Era::Legacy).then_some((LogLevel::Info, false)),
        }
    }

    /// What the client said about itself.
    pub fn terms(&self) -> &ClientTerms {
        &self.terms
    }

    /// Whether the client can answer what this capability is about, such as `sampling`.
    pub fn offers(&self, capability: &str) -> bool {
        self.terms.capabilities.member(capability).is_some()
    }

    /// Whether the client wants to know how far the request has got.
    pub fn wants_progress(&self) -> bool {
        self.progress_token.is_some()
    }

    /// Tells how far the request has got, if the client wants to know.
    pub async fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.progress_token else { return };
        let mut params = json!({ "progressToken": token, "progress": progress });
        total.into_iter().for_each(|total| params["total"] = total.into());
        message.into_iter().for_each(|message| params["message"] = message.into());
        self.notify("notifications/progress", Some(params.into())).await;
    }

    /// Writes a log line, if the client wants such.
    pub async fn log(&self, level: LogLevel, logger: Option<&str>, data: Raw) {
        if !self.hears(level) {
            return;
        }
        let mut params = json!({ "level": level.name(), "data": data });
        logger.into_iter().for_each(|logger| params["logger"] = logger.into());
        self.notify("notifications/message", Some(params.into())).await;
    }

    /// Passes on a log line of somebody else's, if the client wants such: the parameters of `notifications/message`.
    pub async fn pass_log(&self, line: Raw) {
        if LogLevel::of(&line).is_some_and(|level| self.hears(level)) {
            self.notify("notifications/message", Some(line)).await;
        }
    }

    fn hears(&self, level: LogLevel) -> bool {
        self.log_level.map_or(self.terms.era == Era::Legacy, |wanted| level >= wanted)
    }

    /// Says something in the course of the request.
    pub async fn notify(&self, method: &'static str, params: Option<Raw>) {
        let routing = Routing::default();
        // A client that has left needs no news.
        let said = Outbound::Notification { method: method.into(), params, routing };
        let _ = self.out.send(said).await;
    }

    /// Asks the client something, in the handshake era. In the other a handler asks by its result.
    pub async fn ask(&self, method: &'static str, params: Option<Raw>) -> Result<Raw, RpcError> {
        if self.terms.era == Era::Modern {
            return Err(RpcError::new(RpcError::INVALID_REQUEST, "this client is asked by results only"));
        }
        let id = self.peer.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.peer.asks().insert(id, reply);
        let _forget = Forget { id, peer: &self.peer };
        let request = Outbound::Request { id, method: method.into(), params, routing: Routing::default() };
        let gone = || RpcError::new(RpcError::INTERNAL, "the client has left");
        self.out.send(request).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

struct Forget<'a> {
    id: u64,
    peer: &'a Peer,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.peer.asks().remove(&self.id);
    }
}
