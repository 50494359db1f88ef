//! Database storage for sources, tools, calls, circuit breakers, sessions and todos, on SQLite or PostgreSQL.
//!
//! A [`Store`] is an open database with the same API and the same tables on both engines. When a function returns,
//! its writes are durable, except that a power cut can lose the latest call records on SQLite. This crate depends
//! on no other crate of the workspace and knows nothing of MCP: its rows are plain.

mod accepted_definitions;
mod approvals;
mod breakers;
mod calls;
mod change;
mod changes;
mod clock;
mod columns;
mod console_credentials;
mod conversations;
mod error;
mod execute;
mod fold;
mod idempotency;
mod keys;
mod location;
mod migrate;
mod new_file;
mod purge;
mod result_files;
mod results;
mod rows;
mod run_lease;
mod sessions;
mod sources;
mod sqlite;
mod sqlite_connections;
mod statement;
mod store;
mod todos;
mod tool_definitions;
mod tools;

pub use accepted_definitions::AcceptedDefinition;
pub use approvals::ApprovalRow;
pub use breakers::BreakerRow;
pub use calls::{CallCursor, CallFilter, CallPage, CallRow};
pub use change::Change;
pub use changes::Changes;
pub use console_credentials::CredentialRow;
pub use conversations::{BeginError, ConversationRow, EntryAppend, EntryRow, RunBeginning, time_before};
pub use error::StoreError;
pub use idempotency::{IdempotencyRecord, KeyClaim};
pub use location::{Location, LocationError};
pub use purge::JournalSize;
pub use results::{ResultLimits, ResultRow};
pub use run_lease::RunLease;
pub use sessions::SessionRow;
pub use sources::SourceRow;
pub use store::{Store, StoreFuture};
pub use todos::{Bounds, FoundTodos, NewTodo, Status, Todo, TodoChange, TodoFilter, TodosVersion};
pub use tool_definitions::{DefinitionRow, EditionRow, ToolDates};
pub use tools::{InventoryChange, ListedTool, ToolRow, ToolSwitch};
