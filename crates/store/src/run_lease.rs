//! The right of a run to write to its conversation.

use crate::statement::Statement;

/// Right of one run to write to its conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLease {
    /// Conversation.
    pub conversation_id: String,
    /// Run.
    pub run_id: String,
    /// Epoch of the conversation that the run has.
    pub epoch: i64,
    /// Number of entries that the run knows.
    pub entries: i64,
}

impl Statement {
    /// Limits an insert to conversations that the run still owns.
    pub(crate) fn owned_by(self, lease: &RunLease) -> Statement {
        self.sql(" WHERE EXISTS (SELECT 1 FROM conversations WHERE id = ")
            .value(lease.conversation_id.as_str())
            .sql(" AND epoch = ")
            .value(lease.epoch)
            .sql(")")
    }
}
