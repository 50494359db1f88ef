//! Tests the runtime as a whole with in-memory servers (`Puppet`): when servers start, how failures are reported, and
//! which events observers receive.
//!
//! The clock is paused where time matters, so that the tests are fast and deterministic.

mod breaking;
mod first_calls;
mod hearing;
mod idling;
mod leaving;
mod lists;
mod plans;
mod puppet;
mod retrying;
pub(crate) mod rig;
mod timing;
