//! Tests the runtime as a whole with in-memory servers: when servers start, how failures are reported, and
//! which events observers receive.
//!
//! The clock is paused where time matters, so that the tests are fast and deterministic.

mod background_retries;
mod circuit_breaker;
mod events;
mod fake_server;
mod first_calls;
mod idle_stop;
mod listing;
mod plan_changes;
pub(crate) mod rig;
mod shutdown;
mod timeouts;
