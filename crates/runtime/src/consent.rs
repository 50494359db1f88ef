//! Decides how requests from servers are answered that need a person or a policy.

use serde_json::{Value, json};
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

/// The kinds of requests that a [`Consent`] answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answerable {
    /// A user can fill in forms (form elicitation).
    pub forms: bool,
    /// A user can open URLs (URL elicitation). The runtime does not see the answer.
    pub links: bool,
    /// Servers may use a model (sampling), subject to approval.
    pub samples: bool,
    /// The client provides roots for sources whose entry configures none.
    pub roots: bool,
}

impl Answerable {
    /// Returns the client capabilities that declare it.
    pub(crate) fn capabilities(self) -> Value {
        let mut capabilities = json!({});
        if self.roots {
            capabilities["roots"] = json!({});
        }
        if self.forms {
            capabilities["elicitation"]["form"] = json!({});
        }
        if self.links {
            capabilities["elicitation"]["url"] = json!({});
        }
        if self.samples {
            capabilities["sampling"] = json!({});
        }
        capabilities
    }
}

/// Decides how to answer requests from servers.
pub trait Consent: Send + Sync {
    /// Returns what can be answered. The runtime offers it to servers as capabilities.
    fn answers(&self) -> Answerable;

    /// Answers one request.
    fn answer(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;
}

/// Declines every request and offers no capabilities.
#[derive(Clone, Copy, Debug)]
pub struct DeclineAll;

impl Consent for DeclineAll {
    fn answers(&self) -> Answerable {
        Answerable::default()
    }

    fn answer(&self, request: ServerRequest) -> Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>> {
        Box::pin(async move { Err(RpcError::method_not_found(&request.method)) })
    }
}
