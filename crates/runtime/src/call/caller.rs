//! Describes the client on whose behalf a request is made, for example a client of the gateway.

use crate::consent::{Consent, DeclineAll};
use serde_json::json;
use std::{fmt, sync::Arc};
use wharf_mcp::{
    Raw,
    model::LogLevel,
    session::{Audience, Era, Input, MetaKey, OnLog, TaskMode},
};

/// The client on whose behalf a request is made.
#[derive(Clone, Default)]
pub struct Caller {
    /// The client's `_meta`, forwarded to the server as far as the server supports it.
    pub meta: Option<Raw>,
    /// Whether the client handles input requests itself by sending the request again with the input. If so, an input
    /// request from the server is returned as a result.
    pub retries_with_input: bool,
    /// Whether the client takes requests of servers, as clients of the handshake era can. A server that offers both
    /// eras is then called in a session of the handshake era, because it can send requests only there.
    pub takes_requests: bool,
    /// The input that the client sends with the repeated request.
    pub input: Option<Input>,
    /// Answers the server's own requests during this call, in place of the runtime's consent.
    pub consent: Option<Arc<dyn Consent>>,
    /// Decides which log messages that name no request the client may see.
    pub audience: Audience,
    /// Selects the server's log messages that the client receives.
    pub logs: Option<LogSubscription>,
    /// Whether the client handles tasks itself.
    pub tasks: TaskMode,
    /// `params.task` of a client that asks for a task of 2025-11-25.
    pub task_params: Option<Raw>,
}

/// Selects the log messages that a client receives.
#[derive(Clone)]
pub struct LogSubscription {
    /// Minimum level. Messages below it may be delivered too.
    pub level: LogLevel,
    /// Whether the client asked for this level, as opposed to a default.
    pub explicit: bool,
    /// Callback that receives the parameters of each `notifications/message`. It must not block.
    pub on_log: OnLog,
}

impl Caller {
    /// Returns the protocol era of the client, whose members and codes the answer has. Callers without MCP count as
    /// the handshake era, which adds nothing to a result.
    pub(crate) fn era(&self) -> Era {
        if self.retries_with_input { Era::Modern } else { Era::Legacy }
    }

    /// Creates a client that declines every question. It declares no capabilities, so a server that needs input can
    /// report that instead of asking.
    pub fn without_client(principal: Arc<str>) -> Caller {
        let meta = json!({ MetaKey::CAPABILITIES: {} });
        let audience = Audience { principal: Some(principal), client: None };
        Caller { meta: Some(meta.into()), consent: Some(Arc::new(DeclineAll)), audience, ..Caller::default() }
    }

    /// Answers the server's requests during the call with this consent, and declares what it answers.
    #[must_use]
    pub fn with_consent(mut self, consent: Arc<dyn Consent>) -> Caller {
        let capabilities: Raw = consent.answers().capabilities().into();
        let meta = self.meta.unwrap_or_else(Raw::empty_object);
        self.meta = Some(meta.with(MetaKey::CAPABILITIES, &capabilities));
        self.consent = Some(consent);
        self
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("retries_with_input", &self.retries_with_input).finish_non_exhaustive()
    }
}
