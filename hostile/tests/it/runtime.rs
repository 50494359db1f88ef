//! Tests the complete runtime with servers that run as separate processes.

mod names;
mod processes;
mod recovery;
pub(crate) mod rig;
