//! Identifies a failure that several callers see: a failed connect attempt or a lost session.
//!
//! Every waiting caller gets the error, but the breaker and the health of the source count it once.

use crate::{Fault, FaultKind};
use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use wharf_mcp::Session;

/// One failure, shared by all calls that it affects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incident(Arc<IncidentClaims>);

#[derive(Debug, Default)]
struct IncidentClaims {
    breaker: AtomicBool,
    health: AtomicBool,
}

impl Incident {
    /// Returns true for the first caller, which counts the failure in the breaker.
    pub(crate) fn claim_for_breaker(&self) -> bool {
        !self.0.breaker.swap(true, Ordering::AcqRel)
    }

    /// Returns true for the first caller, which counts the failure in the health of the source.
    pub(crate) fn claim_for_health(&self) -> bool {
        !self.0.health.swap(true, Ordering::AcqRel)
    }
}

/// A failed connect attempt.
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

/// A session shared by callers. Its loss is one failure regardless of the number of pending requests.
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

/// Furthest point that a request reached.
#[derive(Debug, Default)]
pub(crate) enum Reached {
    /// No connect attempt has ended yet.
    #[default]
    Nothing,
    /// The connect attempt failed.
    ConnectFailure(Incident),
    /// The request uses this session.
    Session(Arc<SharedSession>),
}

impl Reached {
    /// Returns the failure that this request shares with others, if any. A timeout is never shared.
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
