//! The tables: sources, tools, calls, todos; SQLite or PostgreSQL.
//!
//! A [`Store`] is an open database. What is asked of it is the same for both engines, and so are the tables: one folder of
//! migrations makes them. What a function has written when it returns is on the disk. This crate knows nothing of MCP and
//! of no other crate here: its rows are plain.

mod breakers;
mod calls;
mod changes;
mod clock;
mod error;
mod fold;
mod fresh;
mod location;
mod migrate;
mod promises;
mod purge;
mod recorder;
mod rows;
mod sessions;
mod sources;
mod sqlite;
mod statement;
mod store;
mod todos;
mod tools;

pub use breakers::BreakerRow;
pub use calls::{CallCursor, CallFilter, CallPage, CallRow};
pub use changes::{Change, Changes};
pub use error::StoreError;
pub use location::{Location, LocationError};
pub use promises::{Claim, Promise};
pub use purge::JournalSize;
pub use recorder::{CallView, Calls, ReadPage};
pub use sessions::SessionRow;
pub use sources::SourceRow;
pub use store::Store;
pub use todos::{Bounds, Found, NewTodo, Status, Todo, TodoChange, TodoFilter, TodosMark};
pub use tools::{InventoryChange, ListedTool, ToolRow};
