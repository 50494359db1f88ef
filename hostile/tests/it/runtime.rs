//! The whole runtime on servers that are processes of their own.

mod names;
mod processes;
mod recovery;
pub(crate) mod rig;
