//! The client, as a handler sees it while it answers one request.

use crate::{
    Outbound, Raw, Routing, RpcError,
    session::{Era, MetaKey},
};
use serde_json::json;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};
use tokio::sync::{mpsc, oneshot};

/// How severe a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// What happens.
    Info,
    /// What happens and is worth knowing.
    Notice,
    /// What may become a problem.
    Warning,
    /// What failed.
    Error,
    /// What fails and matters.
    Critical,
    /// What has to be acted upon at once.
    Alert,
    /// What makes everything unusable.
    Emergency,
}

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
}

/// The way back to the client during one request.
#[derive(Clone, Debug)]
pub struct Client {
    terms: Arc<ClientTerms>,
    peer: Arc<Peer>,
    out: mpsc::Sender<Outbound>,
    progress_token: Option<Raw>,
    log_level: Option<LogLevel>,
}

/// What lasts from one request of a client to the next.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) terms: OnceLock<Arc<ClientTerms>>,
    log_level: AtomicU8,
    next_id: AtomicU64,
    asks: Mutex<HashMap<u64, oneshot::Sender<Result<Raw, RpcError>>>>,
}

impl LogLevel {
    const ALL: [(LogLevel, &'static str); 8] = [
        (LogLevel::Debug, "debug"),
        (LogLevel::Info, "info"),
        (LogLevel::Notice, "notice"),
        (LogLevel::Warning, "warning"),
        (LogLevel::Error, "error"),
        (LogLevel::Critical, "critical"),
        (LogLevel::Alert, "alert"),
        (LogLevel::Emergency, "emergency"),
    ];

    /// The level of this name.
    pub fn named(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.iter().find(|(_, known)| *known == name).map(|(level, _)| *level)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        LogLevel::ALL[self as usize].1
    }
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            terms: OnceLock::new(),
            log_level: AtomicU8::new(LogLevel::Debug as u8),
            next_id: AtomicU64::new(1),
            asks: Mutex::default(),
        }
    }
}

impl Peer {
    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    fn log_level(&self) -> LogLevel {
        LogLevel::ALL[usize::from(self.log_level.load(Ordering::Relaxed))].0
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
        out: mpsc::Sender<Outbound>,
        meta: Option<&Raw>,
    ) -> Client {
        let asked: Option<String> = meta.and_then(|meta| meta.member(MetaKey::LOG_LEVEL)?.decode().ok());
        let log_level = match terms.era {
            Era::Legacy => Some(peer.log_level()),
            Era::Modern => asked.and_then(|name| LogLevel::named(&name)),
        };
        let progress_token = meta.and_then(|meta| meta.member("progressToken"));
        Client { terms, peer, out, progress_token, log_level }
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
        if self.log_level.is_none_or(|wanted| level < wanted) {
            return;
        }
        let mut params = json!({ "level": level.name(), "data": data });
        logger.into_iter().for_each(|logger| params["logger"] = logger.into());
        self.notify("notifications/message", Some(params.into())).await;
    }

    /// Says something in the course of the request.
    pub async fn notify(&self, method: &'static str, params: Option<Raw>) {
        let routing = Routing::default();
        // A client that has left needs no news.
        let _ = self.out.send(Outbound::Notification { method: method.into(), params, routing }).await;
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
