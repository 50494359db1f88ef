//! A hostile MCP server made of raw bytes, what is expected of a client that meets it, and a proxy that harms a good
//! connection on its way.
//!
//! The server knows no MCP library: each of its modes is a list of [`Deed`]s, done instead of the answer that a good
//! server would give. The [`matrix`] says for each mode how our client has to come out of it; the binaries `ours` and
//! `theirs` try one row of it each, in a process of their own, so that memory is measured honestly.

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
