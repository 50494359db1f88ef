//! One failure that several callers see: a connect attempt that failed, a session that was lost.
//!
//! Everybody who waited gets the same error, but it is one failure: the breaker and the health of the source count it
//! once.

use crate::{Fault, FaultKind};
use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use wharf_mcp::Session;

/// One failure, shared by all who see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incident(Arc<Claims>);

#[derive(Debug, Default)]
struct Claims {
    breaker: AtomicBool,
    health: AtomicBool,
}

impl Incident {
    /// Returns true for the first who counts it in the breaker.
    pub(crate) fn claim_for_breaker(&self) -> bool {
        !self.0.breaker.swap(true, Ordering::AcqRel)
    }

    /// Returns true for the first who counts it in the health of the source.
    pub(crate) fn claim_for_health(&self) -> bool {
        !self.0.health.swap(true, Ordering::AcqRel)
    }
}

/// A connect attempt that failed.
#[derive(Clone, Debug)]
pub(crate) struct ConnectFailure {
    pub(crate) fault: Arc<Fault>,
    pub(crate) incident: Incident,
}

impl ConnectFailure {
    pub(crate) fn new(fault: Arc<Fault>) -> ConnectFailure {
        ConnectFailure { fault, incident: Incident::default() }
    }
}

/// A session that callers share. Losing it is one failure, however many requests it had.
#[derive(Debug)]
pub(crate) struct SharedSession {
    session: Session,
    loss: Incident,
}

impl SharedSession {
    pub(crate) fn new(session: Session) -> SharedSession {
        SharedSession { session, loss: Incident::default() }
    }
}

impl Deref for SharedSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

/// How far a request got.
#[derive(Debug, Default)]
pub(crate) enum Reached {
    /// Nobody has tried to connect for it yet.
    #[default]
    Nothing,
    /// The connect attempt that it waited for failed.
    ConnectFailure(Incident),
    /// It was sent over this session.
    Session(Arc<SharedSession>),
}

impl Reached {
    /// The failure that this request has in common with others, if it does. A timeout is its own.
    pub(crate) fn incident(&self, fault: &Fault) -> Option<&Incident> {
        match self {
            Reached::Nothing => None,
            Reached::ConnectFailure(incident) => Some(incident),
            Reached::Session(session) => {
                let may_be_loss = matches!(fault.kind, FaultKind::Connection | FaultKind::Protocol);
                (may_be_loss && session.is_over()).then_some(&session.loss)
            }
        }
    }

    pub(crate) fn session(self) -> Option<Arc<SharedSession>> {
        match self {
            Reached::Session(session) => Some(session),
            Reached::Nothing | Reached::ConnectFailure(_) => None,
        }
    }
}
