//! Decides how requests from servers are answered that need a person or a policy.

use std::{future::Future, pin::Pin};
use wharf_mcp::{Raw, RpcError};

/// A request from a server that needs a person or a policy to answer.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// The source that asks.
    pub source: String,
    /// The method: `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The parameters.
    pub params: Raw,
}

/// Decides how to answer requests from servers.
pub trait Consent: Send + Sync {
    /// Returns whether a user can fill in forms (form elicitation).
    fn answers_forms(&self) -> bool;

    /// Returns whether a user can open URLs (URL elicitation). The runtime does not see the answer.
    fn answers_links(&self) -> bool {
        false
    }

    /// Returns whether servers may use a model (sampling), subject to approval.
    fn answers_samples(&self) -> bool {
        false
    }

    /// Returns whether the client provides roots for sources whose entry configures none.
    fn answers_roots(&self) -> bool {
        false
    }

    /// Answers one request.
    fn answer(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;
}

/// Declines every request and offers no capabilities.
#[derive(Clone, Copy, Debug)]
pub struct DeclineAll;

impl Consent for DeclineAll {
    fn answers_forms(&self) -> bool {
        false
    }

    fn answer(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        Box::pin(async move { Err(RpcError::method_not_found(&request.method)) })
    }
}
