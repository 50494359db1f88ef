//! Who answers what a server asks of its client: roots, sampling, elicitation.
//!
//! The same object declares the capabilities and answers for them, so that nothing is advertised that nobody handles.

use crate::{Raw, RpcError};
use serde_json::json;
use std::{future::Future, pin::Pin};

/// An answer being found.
pub type Answering = Pin<Box<dyn Future<Output = Result<Raw, RpcError>> + Send>>;

/// Answers the server's requests.
pub trait Host: Send + Sync {
    /// The client capabilities to declare, as an object: `{"roots":{}}`.
    fn capabilities(&self) -> Raw;

    /// Answers one request of the server, whether it came as a request or inside an `input_required` result.
    fn answer(&self, method: &str, params: Option<Raw>) -> Answering;
}

/// Declares nothing and answers nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoHost;

impl Host for NoHost {
    fn capabilities(&self) -> Raw {
        Raw::empty_object()
    }

    fn answer(&self, method: &str, _params: Option<Raw>) -> Answering {
        let error = RpcError::method_not_found(method);
        Box::pin(async { Err(error) })
    }
}

/// Declares these roots and answers nothing else. Each is a `file://` URI with a name.
#[derive(Clone, Debug)]
pub struct Roots(pub Vec<(String, String)>);

impl Host for Roots {
    fn capabilities(&self) -> Raw {
        json!({ "roots": {} }).into()
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> Answering {
        if method != "roots/list" {
            return NoHost.answer(method, params);
        }
        let roots: Vec<_> = self.0.iter().map(|(uri, name)| json!({ "uri": uri, "name": name })).collect();
        Box::pin(async move { Ok(json!({ "roots": roots }).into()) })
    }
}
