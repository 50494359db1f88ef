//! The runtime as a whole, on servers that are puppets: who is started when, what is said of failures, who is told what.
//!
//! The clock is paused wherever it matters, so that half a minute of rest takes no time and nothing depends on luck.

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
