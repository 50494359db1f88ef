//! Tests the Todo server as a separate process, on both engines and over all four transports.
//!
//! Each test that needs a PostgreSQL server starts one; `cargo xtask provision` installs its programs.

mod builtin;
mod concurrent_writers;
mod engines;
#[path = "../../../store/tests/it/postgres.rs"]
pub(crate) mod postgres;
mod server;
mod suite;
mod third_party_clients;
mod transports;
mod websocket_framing;
