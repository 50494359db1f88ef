//! Open handshake-era sessions of this process, with their limits, owners and cancellable requests.

use super::{kept::Room, trail::Trails};
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
    open: Mutex<HashMap<String, Entry>>,
    limit: usize,
    idle: Duration,
    /// Bytes in the replay buffers of all sessions.
    room: Room,
}

/// Owner of a request. An embedding server that authenticates puts it into the request's extensions.
///
/// A session is visible only to the owner that opened it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(pub Arc<str>);

/// Session of one client.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) peer: Arc<Peer>,
    pub(super) owner: Option<Owner>,
    /// Resumable SSE streams of the session.
    pub(super) trails: Trails,
    running: Mutex<HashMap<Bytes, AbortHandle>>,
}

/// An open session and its state in the session store.
#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    used: Instant,
    /// Key in the session store, if there is one.
    key: Option<String>,
    /// Whether the session store has this session.
    is_kept: bool,
    /// Time of the last read or write in the session store.
    kept: Instant,
    /// Whether the session has to be read from the store before its next use.
    doubtful: bool,
}

/// Registration of a cancellable request. Dropping it removes the registration.
pub(super) struct UnderWay {
    session: Arc<Session>,
    id: Bytes,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.session.running().remove(&self.id);
    }
}

/// Result of a session lookup in memory.
pub(super) enum Found {
    Here(Arc<Session>),
    /// Open here, but the store has to be accessed first: it may have a newer version, may not have the session yet,
    /// or has to extend its lifetime.
    Doubtful(Arc<Session>),
    /// Belongs to another owner.
    Theirs,
    Nowhere,
}

/// Interval at which the stored lifetime of a session in use is extended.
const OLD: Duration = Duration::from_secs(60 * 60);

impl Sessions {
    pub(super) fn new(limit: usize, idle: Duration) -> Sessions {
        Sessions { open: Mutex::default(), limit, idle, room: Room::default() }
    }

    /// Creates a session without opening it.
    pub(super) fn begin(&self, owner: Option<Owner>) -> Session {
        Session { owner, trails: Trails::within(self.room.clone()), ..Session::default() }
    }

    /// Creates a session that its client may continue on another replica.
    ///
    /// Its request ids and stream numbers start at random values, so that replicas do not use the same ones.
    pub(super) fn elsewhere(&self, owner: Option<Owner>) -> Session {
        let session = self.begin(owner);
        let number = || random_id().and_then(|it| u64::from_str_radix(it.get(..12)?, 16).ok());
        session.peer.number_from(number().unwrap_or(1));
        session.trails.number_from(number().unwrap_or(1));
        session
    }

    /// Opens a session under a new random id, or returns `None` if the limit is reached.
    pub(super) fn open(&self, session: Arc<Session>) -> Option<String> {
        let id = random_id()?;
        self.insert(&id, session, None)?;
        Some(id)
    }

    /// Opens a session under this id, or returns the one that is already open. Returns `None` if the limit is
    /// reached.
    pub(super) fn insert(
        &self,
        id: &str,
        session: Arc<Session>,
        key: Option<String>,
    ) -> Option<Arc<Session>> {
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
        let (used, kept, is_kept, doubtful) = (Instant::now(), Instant::now(), key.is_some(), false);
        let entry = Entry { session: session.clone(), used, key, is_kept, kept, doubtful };
        open.insert(id.to_owned(), entry);
        Some(session)
    }

    pub(super) fn find(&self, id: &str, owner: Option<&Owner>) -> Found {
        let mut open = self.entries();
        let Some(entry) = open.get_mut(id) else { return Found::Nowhere };
        if entry.session.owner.as_ref() != owner {
            return Found::Theirs;
        }
        entry.used = Instant::now();
        let sure = entry.key.is_none() || !entry.doubtful && entry.used - entry.kept < OLD;
        let session = entry.session.clone();
        if sure { Found::Here(session) } else { Found::Doubtful(session) }
    }

    /// Records the store's key for a session and whether the store has it.
    pub(super) fn keyed(&self, id: &str, key: String, is_kept: bool) {
        if let Some(entry) = self.entries().get_mut(id) {
            (entry.key, entry.is_kept, entry.doubtful) = (Some(key), is_kept, !is_kept);
        }
    }

    /// Records the result of a store access. After a failure the session stays invalidated.
    pub(super) fn settled(&self, key: &str, is_kept: bool) {
        for entry in self.entries().values_mut().filter(|it| it.key.as_deref() == Some(key)) {
            (entry.is_kept, entry.doubtful) = (entry.is_kept || is_kept, !is_kept);
            entry.kept = Instant::now();
        }
    }

    /// Invalidates the session with this key, or all sessions if `None`.
    pub(super) fn doubt(&self, key: Option<&str>) {
        for entry in self.entries().values_mut() {
            entry.doubtful |= key.is_none() || entry.key.as_deref() == key;
        }
    }

    pub(super) fn is_kept(&self, id: &str) -> bool {
        self.entries().get(id).is_some_and(|it| it.is_kept)
    }

    pub(super) fn is_old(&self, id: &str) -> bool {
        self.entries().get(id).is_some_and(|it| it.kept.elapsed() >= OLD)
    }

    pub(super) fn key_of(&self, session: &Session) -> Option<String> {
        let open = self.entries();
        let entry = open.values().find(|it| std::ptr::eq(&raw const *it.session, &raw const *session));
        entry.and_then(|it| it.key.clone())
    }

    pub(super) fn close(&self, id: &str, owner: Option<&Owner>) -> bool {
        let mut open = self.entries();
        let is_theirs = open.get(id).is_some_and(|it| it.session.owner.as_ref() == owner);
        let closed = if is_theirs { open.remove(id) } else { None };
        drop(open);
        closed.map(|entry| entry.session.abort_all()).is_some()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Registers a request so that it can be cancelled while it runs.
    pub(super) fn began(self: Arc<Session>, id: Raw, handle: AbortHandle) -> UnderWay {
        let id = id.into_bytes();
        self.running().insert(id.clone(), handle);
        UnderWay { session: self, id }
    }

    pub(super) fn cancel(&self, id: &[u8]) {
        let handle = self.running().remove(id);
        handle.into_iter().for_each(|handle| handle.abort());
    }

    fn abort_all(&self) {
        self.running().drain().for_each(|(_, handle)| handle.abort());
        self.trails.end();
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Bytes, AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Generates an unguessable id: knowing a session id is enough to act as its client.
///
/// Uses the operating system's generator, because that of the TLS library takes about 50 ms to initialise and would
/// delay the first client.
pub(super) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(String::with_capacity(32), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    }))
}
