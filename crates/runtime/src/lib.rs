//! Turns YAML text into running upstreams, and a `Call` into an `Outcome`.
//!
//! [`config`] reads an `agent.yaml` and either explains everything that is wrong with it or hands out a
//! [`config::Plan`] that cannot be wrong. An [`Upstream`] is one source of a plan that can be reached; [`catalog`] names
//! what it offers; a [`Fault`] says in the user's words why it could not be reached. This crate never reads the process
//! environment, the current directory or a global: what it may know of the outside comes in as [`config::Env`].

pub mod catalog;
pub mod config;
mod fault;
mod glob;
mod names;
mod redact;
mod text;
pub mod upstream;

pub use fault::{Fault, FaultKind};
pub use glob::Glob;
pub use names::shown_names;
pub use redact::Redactor;
pub use text::Text;
pub use upstream::{Ground, Live, Upstream};
