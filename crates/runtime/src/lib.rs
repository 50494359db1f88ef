//! Turns YAML text into running upstreams, and a `Call` into an `Outcome`.
//!
//! What stands so far is the first half: [`config`] reads an `agent.yaml` and either explains everything that is
//! wrong with it or hands out a [`config::Plan`] that cannot be wrong. This crate never reads the process
//! environment, the current directory or a global: what it may know of the outside comes in as [`config::Env`].

pub mod config;
mod glob;
mod text;

pub use glob::Glob;
pub use text::Text;
