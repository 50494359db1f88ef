//! Session store for handshake-era sessions that several replicas serve.
//!
//! A service keeps its sessions in memory. When several replicas serve the same clients, a [`Ledger`] stores what
//! another replica needs to continue a session: the negotiated terms, the log level and the resource subscriptions.
//! The service writes to it when a session begins, changes or ends. It reads only when it does not know a session or
//! another replica may have changed it, not on every request. Streams and replay buffers are not shared.

use super::{
    HttpService,
    sessions::{Found, Owner, Session},
};
use crate::{
    Raw,
    model::LogLevel,
    serve::{Handler, client::ClientTerms},
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
pub type Keeping<'a, T> = Pin<Box<dyn Future<Output = Result<T, OutOfReach>> + Send + 'a>>;

/// The session store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfReach;

/// The state needed to continue a session on another replica.
#[derive(Clone, Debug)]
pub struct KeptSession {
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
pub trait Ledger: fmt::Debug + Send + Sync {
    /// Derives the storage key of a session id. Only the client may know the id itself.
    fn key(&self, name: &str) -> String;

    /// Stores a new session.
    fn begun<'a>(&'a self, key: &'a str, session: KeptSession) -> Keeping<'a, ()>;

    /// Updates a session after a change, or extends its lifetime after long use.
    fn changed<'a>(&'a self, key: &'a str, session: KeptSession) -> Keeping<'a, ()>;

    /// Loads a session, or `None` if it never existed or a replica has ended it.
    fn find<'a>(&'a self, key: &'a str) -> Keeping<'a, Option<KeptSession>>;

    /// Removes a session for all replicas.
    fn ended<'a>(&'a self, key: &'a str) -> Keeping<'a, ()>;
}

/// HTTP status and message for a request without a valid session.
pub(super) type Refused = (StatusCode, &'static str);

const UNKNOWN: Refused = (StatusCode::NOT_FOUND, "the session is unknown");
const OUT_OF_REACH: Refused =
    (StatusCode::SERVICE_UNAVAILABLE, "the session cannot be looked up at the moment");

impl<H: Handler> HttpService<H> {
    /// Invalidates the session with this key, or all sessions if `None`, because another replica may have changed or
    /// ended it. The next request of an invalidated session reads the store first.
    pub fn doubt(&self, key: Option<&str>) {
        self.sessions.doubt(key);
    }

    /// Returns the session with this id, from memory or from the store.
    pub(super) async fn find(&self, name: &str, owner: Option<&Owner>) -> Result<Arc<Session>, Refused> {
        match (self.sessions.find(name, owner), &self.options.ledger) {
            (Found::Here(session), _) => Ok(session),
            (Found::Theirs, _) | (Found::Nowhere, None) => Err(UNKNOWN),
            (Found::Doubtful(session), None) => Ok(session),
            (Found::Doubtful(session), Some(ledger)) => {
                Box::pin(self.ask_about(&**ledger, name, session)).await
            }
            (Found::Nowhere, Some(ledger)) => Box::pin(self.fetch(&**ledger, name, owner)).await,
        }
    }

    /// Stores a new session before its client learns the id, so that other replicas know it in time.
    pub(super) async fn begun(&self, name: &str, session: &Session) {
        if let Some(ledger) = &self.options.ledger
            && let Some(kept) = session.to_keep()
        {
            let key = ledger.key(name);
            let is_kept = ledger.begun(&key, kept).await.is_ok();
            self.sessions.keyed(name, key, is_kept);
        }
    }

    /// Stores the changes of a session before the request that made them is answered.
    pub(super) async fn changed(&self, session: &Session) {
        let key = self.sessions.key_of(session);
        if let (Some(ledger), Some(key), Some(kept)) = (&self.options.ledger, key, session.to_keep()) {
            // If this write fails, the next lookup of the session tries again.
            let is_kept = ledger.changed(&key, kept).await.is_ok();
            self.sessions.settled(&key, is_kept);
        }
    }

    /// Ends a session on all replicas, if it belongs to this owner.
    pub(super) async fn end(&self, name: &str, owner: Option<&Owner>) -> Result<(), Refused> {
        if self.options.ledger.is_some() {
            self.find(name, owner).await?;
        }
        let was_here = self.sessions.close(name, owner);
        match &self.options.ledger {
            Some(ledger) => ledger.ended(&ledger.key(name)).await.map_err(|_| OUT_OF_REACH),
            None if was_here => Ok(()),
            None => Err(UNKNOWN),
        }
    }

    /// Loads a session that another replica opened.
    async fn fetch(
        &self,
        ledger: &dyn Ledger,
        name: &str,
        owner: Option<&Owner>,
    ) -> Result<Arc<Session>, Refused> {
        if !is_name(name) {
            return Err(UNKNOWN);
        }
        let key = ledger.key(name);
        let kept = ledger.find(&key).await.map_err(|_| OUT_OF_REACH)?.ok_or(UNKNOWN)?;
        if kept.owner.as_deref() != owner.map(|it| &*it.0) || !LEGACY.contains(&kept.version.as_str()) {
            return Err(UNKNOWN);
        }
        let session = self.sessions.elsewhere(owner.cloned());
        let _ = session.peer.terms.set(Arc::new(ClientTerms {
            era: Era::Legacy,
            version: kept.version.clone(),
            capabilities: kept.capabilities.clone(),
            info: kept.info.clone(),
            as_meta: OnceLock::new(),
        }));
        self.take(&session, &kept);
        let full = (StatusCode::SERVICE_UNAVAILABLE, "there are too many sessions");
        self.sessions.insert(name, Arc::new(session), Some(key)).ok_or(full)
    }

    /// Refreshes a session in memory from the store.
    async fn ask_about(
        &self,
        ledger: &dyn Ledger,
        name: &str,
        session: Arc<Session>,
    ) -> Result<Arc<Session>, Refused> {
        let key = ledger.key(name);
        let is_kept = match ledger.find(&key).await {
            // While the store is unavailable, trust the copy in memory.
            Err(OutOfReach) => return Ok(session),
            Ok(None) if self.sessions.is_kept(name) => {
                self.sessions.close(name, session.owner.as_ref());
                return Err(UNKNOWN);
            }
            Ok(None) => match session.to_keep() {
                Some(kept) => ledger.begun(&key, kept).await.is_ok(),
                None => false,
            },
            Ok(Some(kept)) => {
                self.take(&session, &kept);
                // Extend the stored lifetime of a session that is in use.
                !self.sessions.is_old(name) || ledger.changed(&key, kept).await.is_ok()
            }
        };
        self.sessions.settled(&key, is_kept);
        Ok(session)
    }

    /// Applies the stored log level and subscriptions to a session in memory.
    fn take(&self, session: &Session, kept: &KeptSession) {
        if let Some(level) = kept.log_level {
            session.peer.set_log_level(level);
        }
        let before = session.peer.watched();
        before.difference(&kept.watched).for_each(|uri| session.peer.unwatch(uri));
        for uri in kept.watched.difference(&before) {
            // The handler sees the URI in `Service::watched`. `Handler::watch` is not called, so the request does not
            // wait.
            if let Some(hold) = self.service.inner.watched.hold(uri) {
                let _ = session.peer.watch(hold);
            }
        }
    }
}

impl Session {
    fn to_keep(&self) -> Option<KeptSession> {
        let terms = self.peer.terms.get()?;
        Some(KeptSession {
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
fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit())
}
