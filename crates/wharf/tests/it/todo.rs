//! Tests the Todo server as a separate process, on both engines and over all four transports.
//!
//! Each test that needs a PostgreSQL server starts one; `cargo xtask provision` installs its programs.

mod engines;
mod inside;
#[path = "../../../store/tests/it/postgres.rs"]
pub(crate) mod postgres;
mod server;
mod strangers;
mod suite;
mod transports;
mod writers;
