//! Keeps the conversation of `wharf run` in the database.

use crate::{
    app::App,
    cli::RunArgs,
    command_error::CommandError,
    conversations::{Conversations, KeptRun, RunAgent, RunConversation, new_conversation_id},
    exit::Exit,
    lease_owner::{LeaseOwner, own_runs},
    stored_results::StoredResults,
};
use std::{future, sync::Arc};
use wharf_agent::{RunRequest, model::ModelOptions};
use wharf_config::MaskedString;
use wharf_runtime::Handle;
use wharf_store::{BeginError, Store};

/// Principal of conversations that the command line begins: the one of the gateway's own token.
pub(in crate::commands) const PRINCIPAL: &str = "operator";

/// The open database and the run that writes to it.
pub(super) struct KeptConversation {
    store: Store,
    /// The name of the run, if the state folder has one for it.
    _owner: Option<LeaseOwner>,
    run: Arc<KeptRun>,
}

impl KeptConversation {
    /// Begins a run in the conversation that the command line names, or in a new one. The request continues it.
    pub(super) async fn begin(
        app: &App,
        args: &RunArgs,
        (message, model): (&str, &ModelOptions),
        request: &mut RunRequest,
    ) -> Result<Option<KeptConversation>, CommandError> {
        if !args.save && args.conversation.is_none() {
            return Ok(None);
        }
        let (store, owner) = open_for_runs(app).await?;
        let conversations = Conversations::new(store.clone(), app.redactor().clone());
        let agent = run_agent(app, model);
        let failed = |error: BeginError| begin_error(args.conversation.as_deref(), error);
        let id = args.conversation.clone().unwrap_or_else(new_conversation_id);
        let conversation = match &args.conversation {
            Some(id) => RunConversation::Existing(id),
            None => RunConversation::New(&id),
        };
        let begun = conversations.begin((PRINCIPAL, conversation), &request.run_id, (message, &agent)).await;
        let begun = begun.map_err(failed)?;
        request.conversation_id = id;
        request.principal = Some(PRINCIPAL.into());
        request.history = begun.history;
        request.store = Some(begun.kept.clone());
        Ok(Some(KeptConversation { store, _owner: owner, run: begun.kept }))
    }

    /// Stores large results as long as the conversation is kept.
    pub(super) fn keep_results(&self, app: &App, handle: &Handle) {
        keep_results(&self.store, app, handle);
    }

    /// Waits until another run owns the conversation. Waits forever if nothing is kept.
    pub(super) async fn wait_until_lost(kept: Option<&KeptConversation>) {
        match kept {
            Some(kept) => kept.run.keep_lease().await,
            None => future::pending().await,
        }
    }

    pub(super) async fn close(self) {
        self.store.close().await;
    }
}

/// Stores large results in the database, as long as their conversation is kept.
pub(in crate::commands) fn keep_results(store: &Store, app: &App, handle: &Handle) {
    let results = StoredResults::new(store.clone(), app.results);
    handle.keep_results(results.handles(app.upstream_context.supervisor.clone()));
}

/// Opens the database for runs. Those of commands that were killed are over then.
pub(in crate::commands) async fn open_for_runs(
    app: &App,
) -> Result<(Store, Option<LeaseOwner>), CommandError> {
    let failed = |why: String| CommandError::new("MCPError", &why, Exit::Unavailable);
    own_runs(open(app).await?, app.state_folder.as_deref()).await.map_err(failed)
}

/// Opens the database.
pub(in crate::commands) async fn open(app: &App) -> Result<Store, CommandError> {
    let failed = |why: &str| CommandError::new("MCPError", why, Exit::Unavailable);
    let nowhere = "there is no folder for the database\nhelp: set WHARF_HOME or WHARF_DATABASE";
    let location = app.database.as_ref().ok_or_else(|| failed(nowhere))?;
    Store::open(location).await.map_err(|error| failed(&error.to_string()))
}

/// Returns the agent and the model of a run, which may be another one than that of the agent file.
pub(in crate::commands) fn run_agent(app: &App, model: &ModelOptions) -> RunAgent {
    let configured = app.plan.model.as_ref().map(|it| &it.name).filter(|it| it.expose() == model.name);
    RunAgent {
        agent: app.plan.name.as_ref().map(|it| it.shown().to_owned()).unwrap_or_default(),
        provider: model.provider.as_str().to_owned(),
        model: configured.map_or(&*model.name, MaskedString::shown).to_owned(),
    }
}

pub(in crate::commands) fn begin_error(id: Option<&str>, error: BeginError) -> CommandError {
    let id = id.unwrap_or_default();
    let (complaint, exit) = match error {
        BeginError::Unknown => (
            format!("there is no conversation '{id}'\nhelp: `wharf conversations list` lists them"),
            Exit::NotFound,
        ),
        BeginError::Busy(run) => {
            (format!("the run {run} of the conversation is under way or waits"), Exit::TemporaryFailure)
        }
        BeginError::Full => {
            ("the conversation is too long\nhelp: start a new one".to_owned(), Exit::ToolError)
        }
        BeginError::Store(error) => {
            (format!("the conversation cannot be written: {error}"), Exit::Unavailable)
        }
    };
    CommandError::new("MCPError", &complaint, exit)
}
