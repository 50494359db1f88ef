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

mod active_source;
mod active_sources;
pub mod argument_schema;
mod call;
pub mod cassette;
pub mod catalog;
mod catalog_writer;
mod circuit_breaker;
mod consent;
mod era_translation;
mod events;
mod executor;
mod fault;
mod from_file;
mod handshake_sessions;
mod installed_package;
mod launch_program;
mod lists_to_refresh;
pub mod lock;
mod lock_items;
mod npx_cache;
mod options;
pub mod own_tool;
mod redact;
pub mod result_handle;
mod root_changes;
mod running_calls;
mod runtime;
mod runtime_future;
mod server_instructions;
mod server_questions;
mod session_keeper;
mod shutdown_stage;
mod source_request;
mod source_status;
mod status_publisher;
pub mod tokens;
pub mod tool_search;
pub mod trace;
pub mod truncate;
pub mod upstream;
pub mod views;
pub mod why;

pub use active_source::SourceState;
pub use call::{Call, CallRecord, Caller, LogSubscription, OnProgress, Outcome, Stages, Status};
pub use catalog::Catalog;
pub use catalog::{NameParts, shown_names};
pub use circuit_breaker::coordinator::{BreakerCoordinator, ProbeDecision};
pub use circuit_breaker::{
    BreakerSnapshot, BreakerState, BreakerTransition, CircuitBreaker, Permit, Verdict,
};
pub use events::{AbandonedCalls, Event, EventKind, Events, Observer};
pub use fault::{Fault, FaultKind, KnownCause, Stage, known_causes, sent_word};
pub use from_file::{CallError, FromFile, LoadError, ToolOutput, WharfProgram};
pub use installed_package::installed_package;
pub use lock_items::LockItem;
pub use options::RuntimeOptions;
pub use redact::{Redactor, StreamRedactor, secret_in_lock};
pub use running_calls::RunningCall;
pub use runtime::{Handle, PlanChanges, Runtime};
pub use runtime_future::{RawFuture, RuntimeFuture};
pub use server_instructions::merge_instructions;
pub use source_status::{ConnectionState, Health, SessionEvent, SessionState, SourceStatus};
pub use trace::Trace;
pub use upstream::{Builtins, Upstream, UpstreamContext, UpstreamSession};
pub use wharf_config::{BreakerPolicy, Diagnostics, Env, Glob, Grants, MaskedString, Plan, load};
pub use wharf_mcp::time_format;
pub use wharf_mcp::{EgressPolicy, Raw, RpcError};

/// Content of results.
pub mod content {
    pub use wharf_mcp::model::{Block, CallResult, Contents, Item};
}
