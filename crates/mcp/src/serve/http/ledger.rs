//! Sessions of the handshake era that a client may go on with elsewhere.
//!
//! A service keeps its sessions in memory. Where several serve the same clients, a [`Ledger`] has what is needed to go on
//! with a session that another began: what was agreed, from which level on the client wants log lines, and which resources
//! it has subscribed to. It is written to when a session begins, changes or ends, and read when a session is not known
//! here or may have changed elsewhere: not for every request.

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

/// What the ledger comes back with.
pub type Keeping<'a, T> = Pin<Box<dyn Future<Output = Result<T, OutOfReach>> + Send + 'a>>;

/// The ledger cannot be asked at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfReach;

/// All that is needed to go on with a session.
#[derive(Clone, Debug)]
pub struct KeptSession {
    /// Whose it is.
    pub owner: Option<Arc<str>>,
    /// The protocol version that was agreed.
    pub version: String,
    /// What the client can do, as an object.
    pub capabilities: Raw,
    /// Who the client is.
    pub info: Option<Raw>,
    /// From which level on it wants log lines.
    pub log_level: Option<LogLevel>,
    /// The resources it has subscribed to.
    pub watched: BTreeSet<String>,
}

/// Where sessions are kept for others.
pub trait Ledger: fmt::Debug + Send + Sync {
    /// What a session of this name is known by. The name itself is for the client alone.
    fn key(&self, name: &str) -> String;

    /// A session has begun.
    fn begun<'a>(&'a self, key: &'a str, session: KeptSession) -> Keeping<'a, ()>;

    /// A session is not as it was, or has been in use for long.
    fn changed<'a>(&'a self, key: &'a str, session: KeptSession) -> Keeping<'a, ()>;

    /// A session that somebody has begun and nobody has ended.
    fn find<'a>(&'a self, key: &'a str) -> Keeping<'a, Option<KeptSession>>;

    /// A session is over, for everybody.
    fn ended<'a>(&'a self, key: &'a str) -> Keeping<'a, ()>;
}

/// Why there is no session.
pub(super) type Refused = (StatusCode, &'static str);

const UNKNOWN: Refused = (StatusCode::NOT_FOUND, "the session is unknown");
const OUT_OF_REACH: Refused =
    (StatusCode::SERVICE_UNAVAILABLE, "the session cannot be looked up at the moment");

impl<H: Handler> HttpService<H> {
    /// Somebody else has changed or ended the session of this key, or perhaps any: the ledger is asked before it is used.
    pub fn doubt(&self, key: Option<&str>) {
        self.sessions.doubt(key);
    }

    /// A session that is open here or elsewhere.
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

    /// A new session is written down, so that others know it when its client does.
    pub(super) async fn begun(&self, name: &str, session: &Session) {
        if let Some(ledger) = &self.options.ledger
            && let Some(kept) = session.to_keep()
        {
            let key = ledger.key(name);
            let is_kept = ledger.begun(&key, kept).await.is_ok();
            self.sessions.keyed(name, key, is_kept);
        }
    }

    /// What a request has changed about its session is written down before it is answered.
    pub(super) async fn changed(&self, session: &Session) {
        let key = self.sessions.key_of(session);
        if let (Some(ledger), Some(key), Some(kept)) = (&self.options.ledger, key, session.to_keep()) {
            // What cannot be written now is written when the session is next looked up.
            let is_kept = ledger.changed(&key, kept).await.is_ok();
            self.sessions.settled(&key, is_kept);
        }
    }

    /// Ends a session for everybody, if there is one of this owner's.
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

    /// A session that somebody else has begun.
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

    /// A session that is open here, as it is by now.
    async fn ask_about(
        &self,
        ledger: &dyn Ledger,
        name: &str,
        session: Arc<Session>,
    ) -> Result<Arc<Session>, Refused> {
        let key = ledger.key(name);
        let is_kept = match ledger.find(&key).await {
            // As long as nobody can say otherwise, it is as we know it.
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
                // So that one that is in use does not expire.
                !self.sessions.is_old(name) || ledger.changed(&key, kept).await.is_ok()
            }
        };
        self.sessions.settled(&key, is_kept);
        Ok(session)
    }

    /// What a client has asked for elsewhere.
    fn take(&self, session: &Session, kept: &KeptSession) {
        if let Some(level) = kept.log_level {
            session.peer.set_log_level(level);
        }
        let before = session.peer.watched();
        before.difference(&kept.watched).for_each(|uri| session.peer.unwatch(uri));
        for uri in kept.watched.difference(&before) {
            // The handler is told by the set of all that is watched, and nobody waits for it.
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

/// Whether we would have given a session this name: nobody is asked about others.
fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit())
}
