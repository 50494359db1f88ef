//! The sessions of clients of the handshake era.

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

#[derive(Debug)]
pub(super) struct Sessions {
    open: Mutex<HashMap<String, Entry>>,
    limit: usize,
    idle: Duration,
    /// How much all of them remember of what they have said.
    room: Room,
}

/// Whose request it is. Whoever mounts the service and knows who asks says so in the extensions of the request; a session
/// is then unknown to everybody but the one who opened it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(pub Arc<str>);

/// One client's session.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) peer: Arc<Peer>,
    pub(super) owner: Option<Owner>,
    /// Its streams.
    pub(super) trails: Trails,
    running: Mutex<HashMap<Bytes, AbortHandle>>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    used: Instant,
    /// What the ledger knows it by, if there is one.
    key: Option<String>,
    /// Whether the ledger has it.
    is_kept: bool,
    /// When the ledger was last told, or asked.
    kept: Instant,
    /// Somebody else may have changed it.
    doubtful: bool,
}

/// A request that can be cancelled, until it ends or nobody waits for it any more.
pub(super) struct UnderWay {
    session: Arc<Session>,
    id: Bytes,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.session.running().remove(&self.id);
    }
}

/// What is known here of a session.
pub(super) enum Found {
    Here(Arc<Session>),
    /// It is here, but may have changed elsewhere, or has to be written down.
    Doubtful(Arc<Session>),
    /// It is somebody else's.
    Theirs,
    Nowhere,
}

/// How long a session is in use before the ledger is told that it is.
const OLD: Duration = Duration::from_secs(60 * 60);

impl Sessions {
    pub(super) fn new(limit: usize, idle: Duration) -> Sessions {
        Sessions { open: Mutex::default(), limit, idle, room: Room::default() }
    }

    /// A session that is not open yet.
    pub(super) fn begin(&self, owner: Option<Owner>) -> Session {
        Session { owner, trails: Trails::within(self.room.clone()), ..Session::default() }
    }

    /// A session that its client may go on with elsewhere, where it is asked other questions and hears other things: no two
    /// have the same number.
    pub(super) fn elsewhere(&self, owner: Option<Owner>) -> Session {
        let session = self.begin(owner);
        let number = || random_id().and_then(|it| u64::from_str_radix(it.get(..12)?, 16).ok());
        session.peer.number_from(number().unwrap_or(1));
        session.trails.number_from(number().unwrap_or(1));
        session
    }

    /// Opens a session and names it; `None` when there are too many.
    pub(super) fn open(&self, session: Arc<Session>) -> Option<String> {
        let id = random_id()?;
        self.insert(&id, session, None)?;
        Some(id)
    }

    /// Opens a session of this name, or finds that somebody just has; `None` when there are too many.
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
            // A session in use, as by a call or a standing stream, is held by somebody else too.
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

    /// The ledger knows a session by this key, and may have it.
    pub(super) fn keyed(&self, id: &str, key: String, is_kept: bool) {
        if let Some(entry) = self.entries().get_mut(id) {
            (entry.key, entry.is_kept, entry.doubtful) = (Some(key), is_kept, !is_kept);
        }
    }

    /// The ledger and we agree about a session, or not yet.
    pub(super) fn settled(&self, key: &str, is_kept: bool) {
        for entry in self.entries().values_mut().filter(|it| it.key.as_deref() == Some(key)) {
            (entry.is_kept, entry.doubtful) = (entry.is_kept || is_kept, !is_kept);
            entry.kept = Instant::now();
        }
    }

    /// Somebody else has changed the session of this key, or perhaps any.
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
    /// Remembers how to cancel a request, as long as it is under way.
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

/// A name that nobody can guess: whoever knows it is taken for the client. From the system's own source, because that of
/// the TLS library takes some 50 ms to get ready, and the first client would wait for it.
pub(super) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(String::with_capacity(32), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    }))
}
