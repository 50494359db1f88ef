//! Defines the host, which answers requests from the server: roots, sampling, elicitation.
//!
//! The host declares the client capabilities and implements them, so that none is declared without a handler.

use crate::{Raw, RpcError};
use serde_json::json;
use std::{future::Future, pin::Pin};

/// Future of an answer.
pub type HostFuture = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;

/// Answers requests from the server.
pub trait Host: Send + Sync {
    /// Returns the client capabilities to declare, as an object: `{"roots":{}}`.
    fn capabilities(&self) -> Raw;

    /// Returns whether the client reports changes of its roots (`roots.listChanged`).
    fn reports_roots(&self) -> bool {
        false
    }

    /// Answers one server request, received directly or in an `input_required` result.
    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture;
}

/// Declares no capabilities and rejects every request.
#[derive(Clone, Copy, Debug)]
pub struct NoHost;

impl Host for NoHost {
    fn capabilities(&self) -> Raw {
        Raw::empty_object()
    }

    fn answer(&self, method: &str, _params: Option<Raw>) -> HostFuture {
        let error = RpcError::method_not_found(method);
        Box::pin(async { Err(error) })
    }
}

/// Declares and answers `roots` only. Each root is a `file://` URI and a name.
#[derive(Clone, Debug)]
pub struct Roots(pub Vec<(String, String)>);

impl Host for Roots {
    fn capabilities(&self) -> Raw {
        json!({ "roots": {} }).into()
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture {
        if method != "roots/list" {
            return NoHost.answer(method, params);
        }
        let roots: Vec<_> = self.0.iter().map(|(uri, name)| json!({ "uri": uri, "name": name })).collect();
        Box::pin(async move { Ok(json!({ "roots": roots }).into()) })
    }
}
