//! The sessions of clients of the handshake era.

use crate::serve::client::Peer;
use futures_util::future::AbortHandle;
use rustls::crypto::aws_lc_rs;
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
    running: Mutex<HashMap<Vec<u8>, AbortHandle>>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    used: Instant,
}

impl Sessions {
    pub(super) fn new(limit: usize, idle: Duration) -> Sessions {
        Sessions { open: Mutex::default(), limit, idle }
    }

    /// Opens a session and names it; `None` when there are too many.
    pub(super) fn open(&self, session: Arc<Session>) -> Option<String> {
        let id = random_id()?;
        let mut open = self.entries();
        if open.len() >= self.limit {
            // A session in use, as by a call or a standing stream, is held by somebody else too.
            open.retain(|_, entry| entry.used.elapsed() < self.idle || Arc::strong_count(&entry.session) > 1);
        }
        if open.len() >= self.limit {
            return None;
        }
        open.insert(id.clone(), Entry { session, used: Instant::now() });
        Some(id)
    }

    pub(super) fn find(&self, id: &str, owner: Option<&Owner>) -> Option<Arc<Session>> {
        let mut open = self.entries();
        let entry = open.get_mut(id).filter(|it| it.session.owner.as_ref() == owner)?;
        entry.used = Instant::now();
        Some(entry.session.clone())
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
    pub(super) fn of(owner: Option<Owner>) -> Session {
        Session { owner, ..Session::default() }
    }

    /// Remembers how to cancel a request.
    pub(super) fn began(&self, id: &[u8], handle: AbortHandle) {
        let mut running = self.running();
        running.retain(|_, handle| !handle.is_aborted());
        running.insert(id.to_vec(), handle);
    }

    pub(super) fn ended(&self, id: &[u8]) {
        self.running().remove(id);
    }

    pub(super) fn cancel(&self, id: &[u8]) {
        let handle = self.running().remove(id);
        handle.into_iter().for_each(|handle| handle.abort());
    }

    fn abort_all(&self) {
        self.running().drain().for_each(|(_, handle)| handle.abort());
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Vec<u8>, AbortHandle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that nobody can guess: whoever knows it is taken for the client.
pub(super) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    aws_lc_rs::default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(String::with_capacity(32), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    }))
}
