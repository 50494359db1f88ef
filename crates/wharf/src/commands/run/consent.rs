//! Offers servers what the agent can answer: the terminal's user, and the model if the configuration allows sampling.

use std::{future::Future, pin::Pin, sync::Arc};
use wharf_config::SamplingPolicy;
use wharf_mcp::{Raw, RpcError};
use wharf_runtime::upstream::{Answerable, Consent, ServerRequest};

/// Adds sampling to the capabilities of a session. The run itself answers it, because only the run knows which call a
/// server makes it for; requests outside of a call are refused.
pub(in crate::commands) struct AgentConsent {
    inner: Arc<dyn Consent>,
}

impl AgentConsent {
    /// Wraps a consent if servers may use the model.
    pub(in crate::commands) fn wrap(inner: Arc<dyn Consent>, sampling: &SamplingPolicy) -> Arc<dyn Consent> {
        if sampling.is_possible() { Arc::new(AgentConsent { inner }) } else { inner }
    }
}

impl Consent for AgentConsent {
    fn answers(&self) -> Answerable {
        Answerable { samples: true, ..self.inner.answers() }
    }

    fn answer(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        self.inner.answer(request)
    }
}
