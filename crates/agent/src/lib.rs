//! Runs a conversation with a model and the tools it calls.
//!
//! So far this crate contains only the defaults of the model providers. It knows nothing of HTTP servers, the
//! command line or MCP transports.

mod provider;

pub use provider::{default_endpoint, key_variable};
