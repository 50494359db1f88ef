//! Open handshake-era sessions of this process, with their limits, owners and cancellable requests.

use super::{replay_buffer::ReplayBudget, resumable_stream::ResumableStreams};
use crate::{Raw, serve::client::Peer};
use bytes::Bytes;
use futures_util::future::AbortHandle;
use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// All open sessions of this process, by session id.
#[derive(Debug)]
pub(super) struct Sessions {
    open: Mutex<HashMap<String, OpenSession>>,
    limit: usize,
    idle: Duration,
    /// Bytes in the replay buffers of all sessions.
    budget: ReplayBudget,
}

/// Owner of a request. An embedding server that authenticates puts it into the request's extensions.
///
/// A session is visible only to the owner that opened it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(pub Arc<str>);

/// Session of one client.
#[derive(Debug, Default)]
pub(super) struct HttpSession {
    pub(super) peer: Arc<Peer>,
    pub(super) owner: Option<Owner>,
    /// Resumable SSE streams of the session.
    pub(super) streams: ResumableStreams,
    running: Mutex<HashMap<Bytes, AbortHandle>>,
}

/// An open session and its state in the session store.
#[derive(Debug)]
struct OpenSession {
    session: Arc<HttpSession>,
    used: Instant,
    /// Key in the session store, if there is one.
    key: Option<String>,
    /// Whether the session store has this session.
    is_stored: bool,
    /// Time of the last read or write in the session store.
    stored_at: Instant,
    /// Whether the session has to be read from the store before its next use.
    is_stale: bool,
}

/// Registration of a cancellable request. Dropping it removes the registration.
pub(super) struct RunningRequest {
    session: Arc<HttpSession>,
    id: Bytes,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.session.running().remove(&self.id);
    }
}

/// Result of a session lookup in memory.
pub(super) enum SessionLookup {
    Current(Arc<HttpSession>),
    /// Open here, but the store has to be accessed first: it may have a newer version, may not have the session yet,
    /// or has to extend its lifetime.
    Stale(Arc<HttpSession>),
    /// Belongs to another owner.
    OtherOwner,
    Unknown,
}

/// Interval at which the stored lifetime of a session in use is extended.
const EXTEND_INTERVAL: Duration = Duration::from_secs(60 * 60);

impl Sessions {
    pub(super) fn new(limit: usize, idle: Duration) -> Sessions {
        Sessions { open: Mutex::default(), limit, idle, budget: ReplayBudget::default() }
    }

    /// Creates a session without opening it.
    pub(super) fn new_session(&self, owner: Option<Owner>) -> HttpSession {
        HttpSession {
            owner,
            streams: ResumableStreams::with_budget(self.budget.clone()),
            ..HttpSession::default()
        }
    }

    /// Creates a session that its client may continue on another replica.
    ///
    /// Its request ids and stream numbers start at random values, so that replicas do not use the same ones.
    pub(super) fn new_shared_session(&self, owner: Option<Owner>) -> HttpSession {
        let session = self.new_session(owner);
        let number = || random_id().and_then(|it| u64::from_str_radix(it.get(..12)?, 16).ok());
        session.peer.start_numbers_at(number().unwrap_or(1));
        session.streams.start_numbers_at(number().unwrap_or(1));
        session
    }

    /// Opens a session under a new random id, or returns `None` if the limit is reached.
    pub(super) fn open(&self, session: Arc<HttpSession>) -> Option<String> {
        let id = random_id()?;
        self.insert(&id, session, None)?;
        Some(id)
    }

    /// Opens a session under this id, or returns the one that is already open. Returns `None` if the limit is
    /// reached.
    pub(super) fn insert(
        &self,
        id: &str,
        session: Arc<HttpSession>,
        key: Option<String>,
    ) -> Option<Arc<HttpSession>> {
        let mut open = self.entries();
        if let Some(entry) = open.get(id) {
            return Some(entry.session.clone());
        }
        if open.len() >= self.limit {
            // A request or stream that uses the session holds a reference to it.
            open.retain(|_, entry| entry.used.elapsed() < self.idle || Arc::strong_count(&entry.session) > 1);
        }
        if open.len() >= self.limit {
            return None;
        }
        let (used, stored_at, is_stored, is_stale) = (Instant::now(), Instant::now(), key.is_some(), false);
        let entry = OpenSession { session: session.clone(), used, key, is_stored, stored_at, is_stale };
        open.insert(id.to_owned(), entry);
        Some(session)
    }

    pub(super) fn find(&self, id: &str, owner: Option<&Owner>) -> SessionLookup {
        let mut open = self.entries();
        let Some(entry) = open.get_mut(id) else { return SessionLookup::Unknown };
        if entry.session.owner.as_ref() != owner {
            return SessionLookup::OtherOwner;
        }
        entry.used = Instant::now();
        let is_current =
            entry.key.is_none() || !entry.is_stale && entry.used - entry.stored_at < EXTEND_INTERVAL;
        let session = entry.session.clone();
        if is_current { SessionLookup::Current(session) } else { SessionLookup::Stale(session) }
    }

    /// Records the store's key for a session and whether the store has it.
    pub(super) fn set_key(&self, id: &str, key: String, is_stored: bool) {
        if let Some(entry) = self.entries().get_mut(id) {
            (entry.key, entry.is_stored, entry.is_stale) = (Some(key), is_stored, !is_stored);
        }
    }

    /// Records the result of a store access. After a failure the session stays invalidated.
    pub(super) fn record_access(&self, key: &str, is_stored: bool) {
        for entry in self.entries().values_mut().filter(|it| it.key.as_deref() == Some(key)) {
            (entry.is_stored, entry.is_stale) = (entry.is_stored || is_stored, !is_stored);
            entry.stored_at = Instant::now();
        }
    }

    /// Invalidates the session with this key, or all sessions if `None`.
    pub(super) fn invalidate(&self, key: Option<&str>) {
        for entry in self.entries().values_mut() {
            entry.is_stale |= key.is_none() || entry.key.as_deref() == key;
        }
    }

    pub(super) fn is_stored(&self, id: &str) -> bool {
        self.entries().get(id).is_some_and(|it| it.is_stored)
    }

    pub(super) fn needs_extension(&self, id: &str) -> bool {
        self.entries().get(id).is_some_and(|it| it.stored_at.elapsed() >= EXTEND_INTERVAL)
    }

    pub(super) fn find_key(&self, session: &HttpSession) -> Option<String> {
        let open = self.entries();
        let entry = open.values().find(|it| std::ptr::eq(&raw const *it.session, &raw const *session));
        entry.and_then(|it| it.key.clone())
    }

    pub(super) fn close(&self, id: &str, owner: Option<&Owner>) -> bool {
        let mut open = self.entries();
        let is_owner = open.get(id).is_some_and(|it| it.session.owner.as_ref() == owner);
        let closed = if is_owner { open.remove(id) } else { None };
        drop(open);
        closed.map(|entry| entry.session.abort_all()).is_some()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, OpenSession>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSession {
    /// Registers a request so that it can be cancelled while it runs.
    pub(super) fn register_request(self: Arc<HttpSession>, id: Raw, handle: AbortHandle) -> RunningRequest {
        let id = id.into_bytes();
        self.running().insert(id.clone(), handle);
        RunningRequest { session: self, id }
    }

    pub(super) fn cancel(&self, id: &[u8]) {
        let handle = self.running().remove(id);
        handle.into_iter().for_each(|handle| handle.abort());
    }

    fn abort_all(&self) {
        self.running().drain().for_each(|(_, handle)| handle.abort());
        self.streams.end();
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Bytes, AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Generates an unguessable id: knowing a session id is enough to act as its client.
///
/// Uses the operating system's generator, because that of the TLS library takes about 50 ms to initialise and would
/// delay the first client.
pub(in crate::serve) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(String::with_capacity(32), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    }))
}
