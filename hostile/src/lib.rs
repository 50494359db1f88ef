//! A hostile MCP server built from raw bytes, the expected behaviour of a client that connects to it, and a proxy
//! that damages a good connection.
//!
//! The server uses no MCP library: each of its modes is a list of [`Action`]s that replace a good server's
//! response. The [`matrix`] states for each mode how our client must behave. The binaries `ours` and `theirs` each
//! try one row of it in a separate process, so that memory is measured per row.

mod action;
mod action_log;
pub mod matrix;
mod modes;
pub mod options;
pub mod page;
mod performer;
pub mod probe;
pub mod proxy;
mod received;
mod schedule;
pub mod serve;

pub use action::Action;
pub use modes::{Mode, Stage};
