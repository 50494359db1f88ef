//! Turns YAML text into running upstreams, and a `Call` into an `Outcome`.
//!
//! [`config`] reads an `agent.yaml` and either explains everything that is wrong with it or hands out a
//! [`config::Plan`] that cannot be wrong. An [`Upstream`] is one source of a plan that can be reached; [`catalog`] names
//! what it offers; a [`Fault`] says in the user's words why it could not be reached. This crate never reads the process
//! environment, the current directory or a global: what it may know of the outside comes in as [`config::Env`].

mod arbiter;
mod berth;
mod board;
mod breaker;
mod call;
pub mod catalog;
pub mod config;
mod curator;
pub mod cut;
mod events;
mod executor;
mod fault;
mod glob;
mod incident;
mod keeper;
mod names;
pub mod project;
mod redact;
mod runtime;
pub mod schema;
mod stale;
pub mod stamp;
mod standing;
mod text;
pub mod trace;
mod tuning;
pub mod upstream;

pub use arbiter::{Arbiter, Ruling};
pub use berth::SourceState;
pub use breaker::{Breaker, BreakerPolicy, Gate, GateState, Permit, Verdict};
pub use call::{Call, CallRecord, Caller, OnProgress, Outcome, Status, WantedLogs};
pub use catalog::Catalog;
pub use events::{AbandonedCalls, Event, Events, Happening, Observer};
pub use fault::{Fault, FaultKind, KnownCause, Stage, known_causes, sent_word};
pub use glob::Glob;
pub use names::shown_names;
pub use redact::Redactor;
pub use runtime::{Applied, Handle, Runtime};
pub use standing::{ConnectionState, Health, SessionState, Standing, Turn};
pub use text::Text;
pub use trace::Trace;
pub use tuning::Tuning;
pub use upstream::{Ground, Live, Upstream};
