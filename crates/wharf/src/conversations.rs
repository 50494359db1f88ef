//! Conversations of the agent in the database: begins runs, restores what was said, and writes what happens.

use sha2::{Digest, Sha256};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;
use uuid::Uuid;
use wharf_agent::{
    ApprovalAnswer, ApprovalQuestion, ConversationStore, Entry, EntryBatch, EntryBody, History, RunStatus,
    StoreFuture, StoredState, dialect::Usage,
};
use wharf_runtime::Redactor;
use wharf_store::{
    ApprovalRow, BeginError, ConversationRow, EntryAppend, EntryRow, RunBeginning, RunLease, Store,
    StoreError,
};

/// Maximum time of a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of renewals of a lease, which lasts 30 s.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
/// Number of entries that are read at once.
const READ_BATCH: usize = 500;
/// Length of a title that is made from a message, in characters.
const TITLE_CHARS: usize = 80;

/// Conversations in the database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Conversations {
    store: Store,
    redactor: Arc<Redactor>,
}

/// The agent and model of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunAgent {
    pub(crate) agent: String,
    pub(crate) provider: String,
    pub(crate) model: String,
}

/// The conversation of a run that begins. Contains its id.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunConversation<'a> {
    /// The run creates it.
    New(&'a str),
    Existing(&'a str),
}

/// A run that has begun, and the conversation before it.
pub(crate) struct BegunRun {
    pub(crate) kept: Arc<KeptRun>,
    pub(crate) history: History,
}

/// Writes the entries of one run.
pub(crate) struct KeptRun {
    conversations: Conversations,
    lease: Mutex<RunLease>,
}

impl Conversations {
    pub(crate) fn new(store: Store, redactor: Arc<Redactor>) -> Conversations {
        Conversations { store, redactor }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Creates a conversation and returns its id.
    pub(crate) async fn create(
        &self,
        principal: &str,
        title: &str,
        agent: &RunAgent,
    ) -> Result<String, StoreError> {
        self.create_with_id(new_conversation_id(), principal, title, agent).await
    }

    /// Returns the conversation that a client names by an id of its own, if there is one. The id of a conversation of
    /// the principal is that conversation.
    pub(crate) async fn find_named(&self, principal: &str, name: &str) -> Result<Option<String>, StoreError> {
        for id in [name, &id_of_name(principal, name)] {
            if self.store.conversation(id, Some(principal)).await?.is_some() {
                return Ok(Some(id.to_owned()));
            }
        }
        Ok(None)
    }

    /// Returns the conversation that a client names by an id of its own. Creates it for the first message.
    pub(crate) async fn open_named(
        &self,
        principal: &str,
        name: &str,
        agent: &RunAgent,
    ) -> Result<String, StoreError> {
        if let Some(id) = self.find_named(principal, name).await? {
            return Ok(id);
        }
        let id = id_of_name(principal, name);
        let created = self.create_with_id(id.clone(), principal, "", agent).await;
        match created {
            // Another request with the same name may have been faster.
            Err(error) => match self.store.conversation(&id, Some(principal)).await? {
                Some(_) => Ok(id),
                None => Err(error),
            },
            created => created,
        }
    }

    /// Creates a conversation with this id, and returns it.
    async fn create_with_id(
        &self,
        id: String,
        principal: &str,
        title: &str,
        agent: &RunAgent,
    ) -> Result<String, StoreError> {
        let row = self.new_row(id, principal, title, agent);
        self.store.create_conversation(&row).await?;
        Ok(row.id)
    }

    fn new_row(&self, id: String, principal: &str, title: &str, agent: &RunAgent) -> ConversationRow {
        ConversationRow {
            id,
            title: self.redactor.redact(title),
            agent: agent.agent.clone(),
            principal: principal.to_owned(),
            provider: agent.provider.clone(),
            model: agent.model.clone(),
            ..ConversationRow::default()
        }
    }

    /// Begins a run in a conversation of this principal.
    pub(crate) async fn begin(
        &self,
        (principal, conversation): (&str, RunConversation<'_>),
        run_id: &str,
        (message, agent): (&str, &RunAgent),
    ) -> Result<BegunRun, BeginError> {
        let title: String = message.lines().next().unwrap_or_default().chars().take(TITLE_CHARS).collect();
        match conversation {
            RunConversation::New(id) => {
                let row = self.new_row(id.to_owned(), principal, &title, agent);
                let lease = self.store.begin_conversation(&row, run_id).await?;
                Ok(self.begun(lease, History::default()))
            }
            RunConversation::Existing(id) => {
                let (provider, model, title) =
                    (&*agent.provider, &*agent.model, &*self.redactor.redact(&title));
                let beginning = RunBeginning::Message { provider, model, title };
                let lease = self.store.begin_run(id, Some(principal), run_id, beginning).await?;
                self.restored(lease, false).await
            }
        }
    }

    /// Continues a run that waits for decisions.
    pub(crate) async fn resume(
        &self,
        conversation_id: &str,
        run_id: &str,
    ) -> Result<(BegunRun, Vec<(String, ApprovalAnswer)>), BeginError> {
        let approvals = self.store.approvals_of(conversation_id, run_id).await?;
        let lease = self.store.begin_run(conversation_id, None, run_id, RunBeginning::Decisions).await?;
        let decisions = approvals.iter().map(|it| (it.call_id.clone(), answer_of(it))).collect();
        Ok((self.restored(lease, true).await?, decisions))
    }

    async fn restored(&self, lease: RunLease, is_waiting: bool) -> Result<BegunRun, BeginError> {
        let entries = self.read(&lease.conversation_id).await?;
        Ok(self.begun(lease, History::of(entries, is_waiting)))
    }

    fn begun(&self, lease: RunLease, history: History) -> BegunRun {
        let kept = KeptRun { conversations: self.clone(), lease: Mutex::new(lease) };
        BegunRun { kept: Arc::new(kept), history }
    }

    /// Returns the tools that people allowed for the whole conversation, each with the hash of its definition.
    pub(crate) async fn allowed_tools(
        &self,
        conversation_id: &str,
    ) -> Result<HashSet<(String, String)>, StoreError> {
        let allowed = |entry: Entry| match entry.body {
            EntryBody::Approval { tool, is_allowed: true, .. } => tool,
            _ => None,
        };
        Ok(self.read(conversation_id).await?.into_iter().filter_map(allowed).collect())
    }

    /// Reads all entries of a conversation.
    pub(crate) async fn read(&self, conversation_id: &str) -> Result<Vec<Entry>, StoreError> {
        let entries = self.read_with_runs(conversation_id).await?;
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Reads all entries of a conversation, each with the id of its run.
    pub(crate) async fn read_with_runs(
        &self,
        conversation_id: &str,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        let (mut entries, mut after) = (Vec::new(), 0);
        loop {
            let rows = self.store.entries(conversation_id, after, READ_BATCH).await?;
            let Some(last) = rows.last() else { return Ok(entries) };
            after = last.seq;
            entries.extend(rows.iter().filter_map(|it| {
                let entry =
                    Entry::from_text(&it.kind, it.call_id.as_deref(), &it.body, it.native.as_deref())?;
                Some((it.run_id.clone(), entry))
            }));
        }
    }

    fn row(&self, entry: &Entry) -> EntryRow {
        let text = entry.to_text();
        let body = self.redactor.redact(&text.body);
        // A provider refuses data that was changed, so data with a secret in it is not kept.
        let native = text.native.filter(|it| self.redactor.redact(it) == *it);
        EntryRow {
            kind: text.kind.to_owned(),
            call_id: entry.call_id.clone(),
            tokens: i64::try_from(body.len() / 4).unwrap_or(i64::MAX),
            body,
            native_for: text.native_for.filter(|_| native.is_some()),
            native,
            ..EntryRow::default()
        }
    }

    fn question_row(&self, question: &ApprovalQuestion) -> ApprovalRow {
        ApprovalRow {
            id: question.approval_id.clone(),
            call_id: question.call_id.clone(),
            kind: "call".to_owned(),
            question: self.redactor.redact(&question.to_json().to_string()),
            digest: question.digest.clone(),
            expires_at: question.expires_at.map_or(i64::MAX, micros),
            ..ApprovalRow::default()
        }
    }
}

/// Returns the id of a new conversation.
pub(crate) fn new_conversation_id() -> String {
    Uuid::now_v7().to_string()
}

/// Returns the id of the conversation that a client of this principal names so. Principals cannot name each other's.
fn id_of_name(principal: &str, name: &str) -> String {
    let digest = Sha256::new().chain_update(principal.len().to_le_bytes());
    let digest: [u8; 32] = digest.chain_update(principal).chain_update(name).finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// Returns the decision about a call. A question without one has expired.
fn answer_of(row: &ApprovalRow) -> ApprovalAnswer {
    let expired = || Some("nobody decided in time".to_owned());
    ApprovalAnswer {
        is_allowed: row.decision.as_deref() == Some("allow"),
        reason: if row.decision.is_some() { row.reason.clone() } else { expired() },
        by: row.decided_by.clone(),
        is_for_tool: row.scope.as_deref() == Some("tool"),
    }
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl KeptRun {
    /// Renews the lease until it is lost.
    pub(crate) async fn keep_lease(&self) {
        loop {
            tokio::time::sleep(RENEWAL_INTERVAL).await;
            let lease = self.lease();
            let renewed = timeout(WRITE_TIMEOUT, self.conversations.store.renew_lease(&lease)).await;
            if let Ok(Ok(false)) = renewed {
                return;
            }
        }
    }

    /// Leaves the conversation in this state, because the run cannot start.
    pub(crate) async fn release(&self, state: StoredState) {
        let batch = EntryBatch { entries: Vec::new(), state, usage: Usage::default(), cost_micros: 0 };
        let _ = self.append(batch).await;
    }

    /// Deletes the conversation, because the run that would begin it cannot start.
    pub(crate) async fn discard(&self) {
        let id = self.lease().conversation_id;
        let _ = self.conversations.store.delete_conversation(&id, None).await;
    }

    fn lease(&self) -> RunLease {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn append(&self, batch: EntryBatch) -> Result<(), String> {
        let EntryBatch { entries, state, usage, cost_micros } = batch;
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let mut append = EntryAppend {
            entries: entries.iter().map(|it| self.conversations.row(it)).collect(),
            state: "running",
            input_tokens: signed(usage.input),
            output_tokens: signed(usage.output),
            cost_micros: signed(cost_micros),
            ..EntryAppend::default()
        };
        match &state {
            StoredState::Running => {}
            StoredState::Waiting(questions) => {
                append.state = "waiting";
                append.approvals = questions.iter().map(|it| self.conversations.question_row(it)).collect();
            }
            StoredState::Ended(RunStatus::Interrupted) => append.state = "interrupted",
            StoredState::Ended(_) => append.state = "idle",
        }
        let lease = self.lease();
        let written = timeout(WRITE_TIMEOUT, self.conversations.store.append_entries(&lease, &append)).await;
        match written {
            Ok(Ok(true)) => {
                let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
                lease.entries += append.entries.len() as i64;
                Ok(())
            }
            Ok(Ok(false)) => Err("another run owns the conversation".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the database does not answer".to_owned()),
        }
    }
}

impl ConversationStore for KeptRun {
    fn write(&self, batch: EntryBatch) -> StoreFuture<'_> {
        Box::pin(self.append(batch))
    }
}
