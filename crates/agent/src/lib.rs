//! Holds a conversation with a model and runs the tools it asks for.
//!
//! What stands so far is what is known about the providers of models. This crate knows no HTTP server, no command line
//! and no transport.

mod provider;

pub use provider::{default_endpoint, key_variable};
