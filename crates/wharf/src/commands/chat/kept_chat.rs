//! Keeps the conversations of a chat in the database, and finds the one to continue.

use crate::{
    app::App,
    command_error::CommandError,
    commands::run::kept::{PRINCIPAL, begin_error, keep_results, open_for_runs},
    conversations::{Conversations, KeptRun, RunAgent, RunConversation},
    exit::Exit,
    lease_owner::LeaseOwner,
};
use std::{collections::HashSet, sync::Arc};
use wharf_agent::RunRequest;
use wharf_runtime::Handle;
use wharf_store::{BeginError, Store};

/// The open database.
pub(super) struct KeptChat {
    store: Store,
    /// The name of the runs of this chat, if the state folder has one for it.
    _owner: Option<LeaseOwner>,
    conversations: Conversations,
}

impl KeptChat {
    pub(super) async fn open(app: &App) -> Result<KeptChat, CommandError> {
        let (store, owner) = open_for_runs(app).await?;
        let conversations = Conversations::new(store.clone(), app.redactor().clone());
        Ok(KeptChat { store, _owner: owner, conversations })
    }

    /// Returns the conversation to continue: the one with this id, or the latest one. Its title comes with it.
    pub(super) async fn find(&self, id: Option<&str>) -> Result<(String, String), CommandError> {
        let failed = |error| begin_error(id, BeginError::Store(error));
        let found = match id {
            Some(id) => self.store.conversation(id, Some(PRINCIPAL)).await.map_err(failed)?,
            None => {
                self.store.conversations(Some(PRINCIPAL), None, 1).await.map_err(failed)?.into_iter().next()
            }
        };
        match (found, id) {
            (Some(row), _) => Ok((row.id, row.title)),
            (None, Some(id)) => Err(begin_error(Some(id), BeginError::Unknown)),
            (None, None) => {
                Err(CommandError::new("MCPError", "there is no conversation to continue", Exit::NotFound))
            }
        }
    }

    /// Returns the tools that were allowed for a conversation, each with the hash of its definition.
    pub(super) async fn allowed_tools(&self, id: &str) -> Result<HashSet<(String, String)>, CommandError> {
        let allowed = self.conversations.allowed_tools(id).await;
        allowed.map_err(|error| begin_error(Some(id), BeginError::Store(error)))
    }

    /// Begins a run in a conversation, which the first message creates. The request continues it.
    pub(super) async fn begin(
        &self,
        (id, is_new): (&str, bool),
        message: (&str, &RunAgent),
        request: &mut RunRequest,
    ) -> Result<Arc<KeptRun>, CommandError> {
        let conversation = if is_new { RunConversation::New(id) } else { RunConversation::Existing(id) };
        let begun = self.conversations.begin((PRINCIPAL, conversation), &request.run_id, message).await;
        let begun = begun.map_err(|error| begin_error(Some(id), error))?;
        request.principal = Some(PRINCIPAL.into());
        request.history = begun.history;
        request.store = Some(begun.kept.clone());
        Ok(begun.kept)
    }

    /// Stores large results as long as their conversations are kept.
    pub(super) fn keep_results(&self, app: &App, handle: &Handle) {
        keep_results(&self.store, app, handle);
    }

    pub(super) async fn close(self) {
        self.store.close().await;
    }
}
