//! A hostile MCP server built from raw bytes, the expected behaviour of a client that connects to it, and a proxy
//! that damages a good connection.
//!
//! The server uses no MCP library: each of its modes is a list of [`Deed`]s (actions) that replace a good server's
//! response. The [`matrix`] states for each mode how our client must behave. The binaries `ours` and `theirs` each
//! try one row of it in a separate process, so that memory is measured per row.

mod asked;
mod deed;
mod ledger;
pub mod matrix;
mod modes;
mod mouth;
pub mod orders;
pub mod page;
pub mod probe;
pub mod proxy;
pub mod serve;
mod temper;

pub use deed::Deed;
pub use modes::{Mode, Stage};
