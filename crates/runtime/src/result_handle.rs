//! Result handles: a large result is stored, and its reader gets a typed preview and a handle to read, search, query and
//! pass on.
//!
//! Defines what is stored and who owns it. A [`ResultStore`] keeps it; only the owner finds it again.

mod document;
mod memory;
mod outline;
mod preview;
mod query;
mod reading;
mod reference;
mod substitute;
mod tools;

pub use document::{Document, DocumentKind};
pub use memory::MemoryResults;
pub use preview::grouped;
pub(crate) use preview::{describe, handle_result};
pub use query::{QUERY, QueryProgram};
pub use reference::ResultReference;
pub use reference::URI_PREFIX;
use serde_json::{Value, json};
use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration, time::SystemTime};
pub use substitute::{SubstitutionError, Substitutions, may_contain_references, referenced_ids};
pub use tools::ResultTool;
use wharf_config::ResultReader;
use wharf_mcp::Raw;

/// Result of an operation on the store, or why it failed.
pub type ResultFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Keeps results. Every operation is limited to the results of one principal.
pub trait ResultStore: fmt::Debug + Send + Sync {
    /// Stores a result. Evicts the oldest results of its principal if there are too many.
    fn put(&self, new: NewResult) -> ResultFuture<'_, StoredResult>;

    /// Finds a result of the owner: by id, or by the number that it has in the owner's conversation.
    fn get<'a>(
        &'a self,
        owner: &'a ResultOwner,
        id: &'a str,
    ) -> ResultFuture<'a, Option<(StoredResult, Arc<str>)>>;

    /// Lists the results of a principal, the latest first.
    fn list<'a>(&'a self, principal: &'a str) -> ResultFuture<'a, Vec<StoredResult>>;

    /// Deletes a result of a principal. Returns whether it existed.
    fn delete<'a>(&'a self, principal: &'a str, id: &'a str) -> ResultFuture<'a, bool>;
}

/// Owner of stored results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResultOwner {
    /// The authenticated principal; empty if there is none.
    pub principal: Arc<str>,
    /// The conversation, if the results belong to one.
    pub conversation: Option<Arc<str>>,
}

/// A result to store.
#[derive(Clone, Debug)]
pub struct NewResult {
    /// Its owner.
    pub owner: ResultOwner,
    /// Request id of the call that returned it.
    pub request_id: Arc<str>,
    /// Source of the tool.
    pub source: Arc<str>,
    /// Name of the tool on the wire.
    pub tool: Arc<str>,
    /// The document, without secrets.
    pub document: Document,
    /// How long to keep it, outside of kept conversations.
    pub keep: Duration,
}

/// A text to store that is not the result of a call.
#[derive(Clone, Debug)]
pub struct NewText {
    /// Its owner.
    pub owner: ResultOwner,
    /// Id of the request that it belongs to.
    pub request_id: Arc<str>,
    /// Source that it is from; empty if there is none.
    pub source: Arc<str>,
    /// Name that readers see, such as that of a tool or a file.
    pub name: Arc<str>,
    /// The text, without secrets.
    pub text: String,
}

/// A stored text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredText {
    /// Id that the owner uses.
    pub id: String,
    /// Text for the reader in its place: its name, its beginning and how to read the whole.
    pub preview: String,
}

/// A stored result, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResult {
    /// Id that nobody can guess.
    pub id: String,
    /// Short id within its conversation, if it belongs to one.
    pub handle: Option<String>,
    /// The conversation, if it belongs to one.
    pub conversation: Option<String>,
    /// Source of the tool.
    pub source: String,
    /// Name of the tool on the wire.
    pub tool: String,
    /// Kind of the document.
    pub kind: DocumentKind,
    /// Size of the document, in bytes.
    pub bytes: u64,
    /// SHA-256 of the document, in hexadecimal.
    pub sha256: String,
    /// When it was stored.
    pub created_at: SystemTime,
    /// When it will be deleted. `None` if that is when its conversation is deleted.
    pub expires_at: Option<SystemTime>,
}

/// A stored result that was passed to a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedResult {
    /// The id, as the caller wrote it.
    pub id: String,
    /// JSON Pointer to the part that was passed; empty for the whole document.
    pub pointer: String,
    /// Size of what was passed, in bytes.
    pub bytes: usize,
}

impl PassedResult {
    /// Returns the JSON of records and approvals.
    pub fn to_json(&self) -> Value {
        json!({ "id": self.id, "pointer": self.pointer, "bytes": self.bytes })
    }
}

/// A stored result, and what its reader gets instead.
#[derive(Clone, Debug)]
pub struct ResultHandle {
    /// The stored result. `None` if storing failed, so that the reader gets a truncated result.
    pub stored: Option<StoredResult>,
    /// The result for the reader.
    pub shown: Raw,
}

/// Stores results and reads them again.
#[derive(Clone, Debug)]
pub struct ResultHandles {
    /// Keeps the results.
    pub store: Arc<dyn ResultStore>,
    /// Runs queries. Without it only JSON Pointers can be queried.
    pub query: Option<QueryProgram>,
}

impl StoredResult {
    /// Returns the id that the owner uses: the short one, if there is one.
    pub fn short_id(&self) -> &str {
        self.handle.as_deref().unwrap_or(&self.id)
    }

    /// Returns the URI of the result.
    pub fn uri(&self) -> String {
        format!("{URI_PREFIX}{}", self.short_id())
    }
}

/// Creates an id that nobody can guess.
pub fn new_result_id() -> String {
    format!("r-{}", uuid::Uuid::new_v4().simple())
}

/// Returns the kind of reader of an interface, by its name in call records.
pub(crate) fn reader_of(via: &str) -> Option<ResultReader> {
    match via {
        "agent" => Some(ResultReader::Agent),
        "mcp" => Some(ResultReader::Mcp),
        "rest" => Some(ResultReader::Rest),
        _ => None,
    }
}
