//! Injects faults between a session and its link, for tests of clients.
//!
//! The link is real and so are the frames of injected responses: they pass the same reader as those of a server. Timeouts,
//! frame recovery and circuit breakers therefore do what they do in production.

mod faulty_link;

use crate::{Opener, Opening, Raw, RpcError};
use std::{fmt, sync::Arc, time::Duration};

/// Fault of one request.
#[derive(Clone, Debug, PartialEq)]
pub enum InjectedFault {
    /// The request is sent later.
    Delay(Duration),
    /// The request is lost.
    Drop,
    /// The connection ends.
    Disconnect,
    /// The request is not sent; this is its response.
    Answer(Result<Raw, RpcError>),
    /// The request is not sent; its response is not valid JSON.
    Malformed,
    /// This many changes of the tool list are announced, and then the request is sent.
    ToolsChanged(u64),
}

/// Decides which requests get a fault.
pub trait FaultInjector: fmt::Debug + Send + Sync {
    /// Returns the fault of a request, if it gets one.
    fn inject(&self, method: &str, params: Option<&Raw>) -> Option<InjectedFault>;
}

/// Opens the links of another opener and injects faults into them.
pub struct FaultyOpener {
    opener: Box<dyn Opener>,
    injector: Arc<dyn FaultInjector>,
}

impl FaultyOpener {
    /// Wraps an opener.
    pub fn new(opener: Box<dyn Opener>, injector: Arc<dyn FaultInjector>) -> FaultyOpener {
        FaultyOpener { opener, injector }
    }
}

impl Opener for FaultyOpener {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Ok(faulty_link::wrap(self.opener.open().await?, self.injector.clone())) })
    }

    fn starts_process(&self) -> bool {
        self.opener.starts_process()
    }
}
