//! Who a request is made for, where that is somebody with a say in it: a client of the gateway's, for example.

use crate::upstream::{Consent, Declines};
use serde_json::json;
use std::{fmt, sync::Arc};
use wharf_mcp::{
    Raw,
    model::LogLevel,
    session::{Input, MetaKey, OnLog},
};

/// Who a request is made for.
#[derive(Clone, Default)]
pub struct Caller {
    /// What it says about itself and the request: `_meta`, which goes to the server as far as that understands it.
    pub meta: Option<Raw>,
    /// Whether it answers a server's demands for input itself, by coming back: then such a demand is a result.
    pub comes_back: bool,
    /// What it comes back with.
    pub input: Option<Input>,
    /// Who answers what the server asks meanwhile, in place of the runtime's own consent.
    pub consent: Option<Arc<dyn Consent>>,
    /// Which log lines of the server it wants to hear.
    pub logs: Option<WantedLogs>,
}

/// Which log lines somebody wants to hear.
#[derive(Clone)]
pub struct WantedLogs {
    /// From this level on; lesser ones may be told too.
    pub level: LogLevel,
    /// Whether it asked for this level, rather than for none in particular.
    pub explicit: bool,
    /// Told each line: the parameters of `notifications/message`. It must not block.
    pub told: OnLog,
}

impl Caller {
    /// Somebody who cannot be asked anything: a server that needs to ask says so, where it can.
    pub fn nobody() -> Caller {
        let meta = json!({ MetaKey::CAPABILITIES: {} });
        Caller { meta: Some(meta.into()), consent: Some(Arc::new(Declines)), ..Caller::default() }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("comes_back", &self.comes_back).finish_non_exhaustive()
    }
}
