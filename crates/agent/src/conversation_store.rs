//! The trait that keeps conversations. The crate knows no tables.

use crate::{dialect::Usage, entry::Entry, events::ApprovalQuestion, run_ending::RunStatus};
use std::{future::Future, pin::Pin};

/// Result of a write: nothing, or why it failed.
pub type StoreFuture<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Entries that are written together.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryBatch {
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// State of the run after them.
    pub state: StoredState,
    /// Tokens used since the last batch.
    pub usage: Usage,
    /// Cost since the last batch, in millionths of the currency of the price list.
    pub cost_micros: u64,
}

/// State of a conversation in its store.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredState {
    /// The run goes on.
    Running,
    /// The run waits for decisions about these calls.
    Waiting(Vec<ApprovalQuestion>),
    /// The run ended.
    Ended(RunStatus),
}

/// Keeps the entries of one run of one conversation.
pub trait ConversationStore: Send + Sync {
    /// Writes a batch, whole or not at all, and returns once it is durable. Fails if another run owns the conversation.
    fn write(&self, batch: EntryBatch) -> StoreFuture<'_>;
}
