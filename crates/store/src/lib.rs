//! The tables: sources, calls, todos; SQLite or PostgreSQL.
//!
//! What stands so far is the address of a database. This crate knows nothing of MCP and of no other crate here: its rows
//! are plain.

mod location;

pub use location::{Location, LocationError};
