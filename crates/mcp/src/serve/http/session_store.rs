//! Session store for handshake-era sessions that several replicas serve.
//!
//! A service keeps its sessions in memory. When several replicas serve the same clients, a [`SessionStore`] stores what
//! another replica needs to continue a session: the negotiated terms, the log level and the resource subscriptions.
//! The service writes to it when a session begins, changes or ends. It reads only when it does not know a session or
//! another replica may have changed it, not on every request. Streams and replay buffers are not shared.

use super::{
    HttpService,
    sessions::{HttpSession, Owner, SessionLookup},
};
use crate::{
    Raw,
    model::LogLevel,
    serve::client::ClientTerms,
    session::{Era, LEGACY},
};
use ::http::StatusCode;
use std::{
    collections::BTreeSet,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
};

/// A pending result of the session store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreUnavailable>> + Send + 'a>>;

/// The session store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreUnavailable;

/// The state needed to continue a session on another replica.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// Owner of the session, if requests are authenticated.
    pub owner: Option<Arc<str>>,
    /// Negotiated protocol version.
    pub version: String,
    /// Client capabilities, as an object.
    pub capabilities: Raw,
    /// Client name and version (`clientInfo`), as an object.
    pub info: Option<Raw>,
    /// Log level set by the client.
    pub log_level: Option<LogLevel>,
    /// URIs of the subscribed resources.
    pub watched: BTreeSet<String>,
}

/// Stores sessions so that other replicas can continue them.
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Derives the storage key of a session id. Only the client may know the id itself.
    fn key(&self, name: &str) -> String;

    /// Stores a new session.
    fn create_session<'a>(&'a self, key: &'a str, session: StoredSession) -> StoreFuture<'a, ()>;

    /// Updates a session after a change, or extends its lifetime after long use.
    fn update_session<'a>(&'a self, key: &'a str, session: StoredSession) -> StoreFuture<'a, ()>;

    /// Loads a session, or `None` if it never existed or a replica has ended it.
    fn find<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<StoredSession>>;

    /// Removes a session for all replicas.
    fn remove_session<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()>;
}

/// HTTP status and message for a request without a valid session.
pub(super) type Rejection = (StatusCode, &'static str);

const UNKNOWN_SESSION: Rejection = (StatusCode::NOT_FOUND, "unknown session");
const UNAVAILABLE: Rejection = (StatusCode::SERVICE_UNAVAILABLE, "the session store is unavailable");

impl HttpService {
    /// Invalidates the session with this key, or all sessions if `None`, because another replica may have changed or
    /// ended it. The next request of an invalidated session reads the store first.
    pub fn invalidate(&self, key: Option<&str>) {
        self.sessions.invalidate(key);
    }

    /// Returns the session with this id, from memory or from the store.
    pub(super) async fn find(
        &self,
        name: &str,
        owner: Option<&Owner>,
    ) -> Result<Arc<HttpSession>, Rejection> {
        match (self.sessions.find(name, owner), &self.options.session_store) {
            (SessionLookup::Current(session), _) => Ok(session),
            (SessionLookup::OtherOwner, _) | (SessionLookup::Unknown, None) => Err(UNKNOWN_SESSION),
            (SessionLookup::Stale(session), None) => Ok(session),
            (SessionLookup::Stale(session), Some(session_store)) => {
                Box::pin(self.refresh(&**session_store, name, session)).await
            }
            (SessionLookup::Unknown, Some(session_store)) => {
                Box::pin(self.load_session(&**session_store, name, owner)).await
            }
        }
    }

    /// Stores a new session before its client learns the id, so that other replicas know it in time.
    pub(super) async fn create_session(&self, name: &str, session: &HttpSession) {
        if let Some(session_store) = &self.options.session_store
            && let Some(stored) = session.to_stored()
        {
            let key = session_store.key(name);
            let is_stored = session_store.create_session(&key, stored).await.is_ok();
            self.sessions.set_key(name, key, is_stored);
        }
    }

    /// Stores the changes of a session before the request that made them is answered.
    pub(super) async fn update_session(&self, session: &HttpSession) {
        let key = self.sessions.find_key(session);
        if let (Some(session_store), Some(key), Some(stored)) =
            (&self.options.session_store, key, session.to_stored())
        {
            // If this write fails, the next lookup of the session tries again.
            let is_stored = session_store.update_session(&key, stored).await.is_ok();
            self.sessions.record_access(&key, is_stored);
        }
    }

    /// Ends a session on all replicas, if it belongs to this owner.
    pub(super) async fn end(&self, name: &str, owner: Option<&Owner>) -> Result<(), Rejection> {
        if self.options.session_store.is_some() {
            self.find(name, owner).await?;
        }
        let was_here = self.sessions.close(name, owner);
        match &self.options.session_store {
            Some(session_store) => {
                session_store.remove_session(&session_store.key(name)).await.map_err(|_| UNAVAILABLE)
            }
            None if was_here => Ok(()),
            None => Err(UNKNOWN_SESSION),
        }
    }

    /// Loads a session that another replica opened.
    async fn load_session(
        &self,
        session_store: &dyn SessionStore,
        name: &str,
        owner: Option<&Owner>,
    ) -> Result<Arc<HttpSession>, Rejection> {
        if !is_session_id(name) {
            return Err(UNKNOWN_SESSION);
        }
        let key = session_store.key(name);
        let stored = session_store.find(&key).await.map_err(|_| UNAVAILABLE)?.ok_or(UNKNOWN_SESSION)?;
        if stored.owner.as_deref() != owner.map(|it| &*it.0) || !LEGACY.contains(&stored.version.as_str()) {
            return Err(UNKNOWN_SESSION);
        }
        let session = self.sessions.new_shared_session(owner.cloned());
        let _ = session.peer.terms.set(Arc::new(ClientTerms {
            era: Era::Legacy,
            version: stored.version.clone(),
            capabilities: stored.capabilities.clone(),
            info: stored.info.clone(),
            as_meta: OnceLock::new(),
        }));
        self.apply_stored(&session, &stored);
        let full = (StatusCode::SERVICE_UNAVAILABLE, "too many open sessions");
        self.sessions.insert(name, Arc::new(session), Some(key)).ok_or(full)
    }

    /// Refreshes a session in memory from the store.
    async fn refresh(
        &self,
        session_store: &dyn SessionStore,
        name: &str,
        session: Arc<HttpSession>,
    ) -> Result<Arc<HttpSession>, Rejection> {
        let key = session_store.key(name);
        let is_stored = match session_store.find(&key).await {
            // While the store is unavailable, trust the copy in memory.
            Err(StoreUnavailable) => return Ok(session),
            Ok(None) if self.sessions.is_stored(name) => {
                self.sessions.close(name, session.owner.as_ref());
                return Err(UNKNOWN_SESSION);
            }
            Ok(None) => match session.to_stored() {
                Some(stored) => session_store.create_session(&key, stored).await.is_ok(),
                None => false,
            },
            Ok(Some(stored)) => {
                self.apply_stored(&session, &stored);
                // Extend the stored lifetime of a session that is in use.
                !self.sessions.needs_extension(name)
                    || session_store.update_session(&key, stored).await.is_ok()
            }
        };
        self.sessions.record_access(&key, is_stored);
        Ok(session)
    }

    /// Applies the stored log level and subscriptions to a session in memory.
    fn apply_stored(&self, session: &HttpSession, stored: &StoredSession) {
        if let Some(level) = stored.log_level {
            session.peer.set_log_level(level);
        }
        let previous = session.peer.watched();
        previous.difference(&stored.watched).for_each(|uri| _ = session.peer.unwatch(uri));
        for uri in stored.watched.difference(&previous) {
            // The handler sees the URI in `Service::watched`. `Handler::watch` is not called, so the request does not
            // wait.
            if let Some(subscription) = self.service.inner.watched.subscribe(uri) {
                let _ = session.peer.watch(subscription);
            }
        }
    }
}

impl HttpSession {
    fn to_stored(&self) -> Option<StoredSession> {
        let terms = self.peer.terms.get()?;
        Some(StoredSession {
            owner: self.owner.as_ref().map(|it| it.0.clone()),
            version: terms.version.clone(),
            capabilities: terms.capabilities.clone(),
            info: terms.info.clone(),
            log_level: self.peer.log_level(),
            watched: self.peer.watched(),
        })
    }
}

/// Checks that a session id has our format, so that arbitrary values never cause a store lookup.
fn is_session_id(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit())
}
