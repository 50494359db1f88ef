//! The Todo server, as others use it: started as a process of its own, on both engines, over all four transports.
//!
//! A PostgreSQL server is started for each test that needs one; `cargo xtask provision` puts its programs in place.

mod engines;
mod inside;
#[path = "../../../store/tests/it/postgres.rs"]
pub(crate) mod postgres;
mod server;
mod strangers;
mod suite;
mod transports;
mod writers;
