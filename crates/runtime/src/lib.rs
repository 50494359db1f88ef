//! Runs the MCP servers of an agent file and calls their tools.
//!
//! ```no_run
//! use serde_json::json;
//! use std::time::Duration;
//! use wharf_runtime::Runtime;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::from_file("agent.yaml").await?;
//! let todo = runtime.call("todo__create_todo", json!({ "title": "Milk", "priority": 2 })).await?;
//! println!("{}", todo.text());
//! runtime.shutdown(Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Runtime::from_file`] reads the environment of this process. The rest of the crate gets its inputs as arguments:
//!
//! - [`load`] reads an agent file with an [`Env`]. It returns a valid [`Plan`], or [`Diagnostics`] with every error
//!   in the file.
//! - [`Runtime::start`] runs a plan.
//! - A [`Handle`] calls tools ([`Call`]), gets prompts and reads resources. It is cheap to clone.
//! - [`Events`] and an [`Observer`] receive events.
//! - A [`Fault`] describes a failure in the user's words and suggests a fix.
//!
//! Arguments and results are [`Raw`] JSON.

mod arbiter;
mod berth;
mod board;
mod breaker;
mod call;
pub mod catalog;
mod curator;
pub mod cut;
mod events;
mod executor;
mod fault;
mod from_file;
mod host_environment;
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
pub mod trace;
mod tuning;
pub mod upstream;
mod wharf_program;

pub use arbiter::{Arbiter, Ruling};
pub use berth::SourceState;
pub use breaker::{Breaker, Gate, GateState, Permit, Verdict};
pub use call::{Call, CallRecord, Caller, OnProgress, Outcome, Status, WantedLogs};
pub use catalog::Catalog;
pub use events::{AbandonedCalls, Event, Events, Happening, Observer};
pub use fault::{Fault, FaultKind, KnownCause, Stage, known_causes, sent_word};
pub use from_file::{CallError, FromFile, LoadError, ToolOutput};
pub use names::shown_names;
pub use redact::Redactor;
pub use runtime::{Applied, Handle, Runtime};
pub use standing::{ConnectionState, Health, SessionState, Standing, Turn};
pub use trace::Trace;
pub use tuning::Tuning;
pub use upstream::{Builtins, Ground, Live, Upstream};
pub use wharf_config::{BreakerPolicy, Diagnostics, Env, Glob, Grants, Plan, Text, load};
pub use wharf_mcp::Raw;
pub use wharf_program::WharfProgram;
