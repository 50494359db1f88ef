//! Runs a conversation with a model and the tools it calls.
//!
//! So far this crate contains the providers' wire formats. [`dialect::Dialect`] writes the body of a request, and
//! [`answer::AnswerReader`] turns the bytes of the response into an [`answer::Answer`]. Both are pure: the caller
//! sends and receives the bytes. The crate knows nothing of HTTP servers, the command line or MCP transports.

pub mod answer;
pub mod arguments;
pub mod dialect;
mod framing;
pub mod message;
pub mod model;
mod provider;
pub mod tool_list;
pub mod view;

#[cfg(test)]
mod tests;

pub use provider::{default_endpoint, key_variable, uses_key_variable};
