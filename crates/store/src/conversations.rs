//! The `conversations` and `entries` tables: what users and the agent said, and what happened to the calls.
//!
//! A run owns its conversation by an epoch and a lease. Every write compares the epoch, so a run that lost its
//! conversation to another one cannot write any more.

use crate::{
    Store, StoreError,
    approvals::ApprovalRow,
    clock,
    rows::{AnyRow, plain_row},
    run_lease::RunLease,
    sqlite::Durability,
    statement::Statement,
};
use std::time::Duration;

const COLUMNS: &str = "id, title, agent, principal, provider, model, state, run_id, epoch, lease_owner, lease_until, \
    entries, bytes, input_tokens, output_tokens, cost_micros, created_at, updated_at";

/// How long a run owns its conversation without a write.
const LEASE: i64 = 30_000_000;

/// Maximum number of entries of a conversation, and their size in bytes.
const MAX_ENTRIES: i64 = 10_000;
const MAX_BYTES: i64 = 256 << 20;

/// One conversation. Times are in microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationRow {
    /// Id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Name of the agent.
    pub agent: String,
    /// Principal that owns the conversation.
    pub principal: String,
    /// Provider of the latest model.
    pub provider: String,
    /// Name of the latest model.
    pub model: String,
    /// `idle`, `running` or `waiting`.
    pub state: String,
    /// Latest run.
    pub run_id: Option<String>,
    /// Number of runs, including continued ones.
    pub epoch: i64,
    /// Replica that runs it.
    pub lease_owner: Option<String>,
    /// Time until which the replica owns it.
    pub lease_until: i64,
    /// Number of entries.
    pub entries: i64,
    /// Size of the entries.
    pub bytes: i64,
    /// Tokens of all requests.
    pub input_tokens: i64,
    /// Tokens of all answers.
    pub output_tokens: i64,
    /// Cost in millionths of the currency of the price list.
    pub cost_micros: i64,
    /// Time of creation.
    pub created_at: i64,
    /// Time of the latest change.
    pub updated_at: i64,
}

plain_row!(ConversationRow {
    id,
    title,
    agent,
    principal,
    provider,
    model,
    state,
    run_id,
    epoch,
    lease_owner,
    lease_until,
    entries,
    bytes,
    input_tokens,
    output_tokens,
    cost_micros,
    created_at,
    updated_at,
});

/// One entry of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryRow {
    /// Conversation.
    pub conversation_id: String,
    /// Position, from 1; set by the store.
    pub seq: i64,
    /// Run that wrote it.
    pub run_id: String,
    /// Kind.
    pub kind: String,
    /// Call that it is about.
    pub call_id: Option<String>,
    /// Content, as JSON.
    pub body: String,
    /// Data of a provider, as JSON.
    pub native: Option<String>,
    /// Provider and model that the data belongs to.
    pub native_for: Option<String>,
    /// Estimated tokens.
    pub tokens: i64,
    /// Time of writing; set by the store.
    pub created_at: i64,
}

plain_row!(EntryRow {
    conversation_id,
    seq,
    run_id,
    kind,
    call_id,
    body,
    native,
    native_for,
    tokens,
    created_at,
});

/// Entries to append, and the state of the conversation after them.
#[derive(Clone, Debug, Default)]
pub struct EntryAppend {
    /// The entries, in order.
    pub entries: Vec<EntryRow>,
    /// Questions to store with them.
    pub approvals: Vec<ApprovalRow>,
    /// `idle`, `running` or `waiting`.
    pub state: &'static str,
    /// Tokens of the requests.
    pub input_tokens: i64,
    /// Tokens of the answers.
    pub output_tokens: i64,
    /// Cost in millionths.
    pub cost_micros: i64,
}

/// Beginning of a run.
#[derive(Clone, Copy, Debug)]
pub enum RunBeginning<'a> {
    /// A message of the user. Sets the provider and model of the conversation, and its title if it has none.
    Message {
        /// Provider.
        provider: &'a str,
        /// Name of the model.
        model: &'a str,
        /// Title.
        title: &'a str,
    },
    /// Decisions about the calls of a run that waits.
    Decisions,
}

/// Reason why a run cannot begin.
#[derive(Debug)]
pub enum BeginError {
    /// The principal has no such conversation.
    Unknown,
    /// Another run is under way or waits. Contains its id.
    Busy(String),
    /// The conversation has too many entries.
    Full,
    /// The database failed.
    Store(StoreError),
}

impl From<StoreError> for BeginError {
    fn from(error: StoreError) -> BeginError {
        BeginError::Store(error)
    }
}

impl ConversationRow {
    /// Inserts a conversation without entries that was created now.
    fn insert(&self, now: i64) -> Statement {
        Statement::new("INSERT INTO conversations (")
            .sql(COLUMNS)
            .sql(") VALUES (")
            .values([
                self.id.as_str().into(),
                self.title.as_str().into(),
                self.agent.as_str().into(),
                self.principal.as_str().into(),
                self.provider.as_str().into(),
                self.model.as_str().into(),
                self.state.as_str().into(),
                self.run_id.as_deref().into(),
                self.epoch.into(),
                self.lease_owner.as_deref().into(),
                self.lease_until.into(),
                0_i64.into(),
                0_i64.into(),
                0_i64.into(),
                0_i64.into(),
                0_i64.into(),
                now.into(),
                now.into(),
            ])
            .sql(")")
    }

    /// Returns the state for people: a running conversation whose lease has expired was interrupted.
    pub fn shown_state(&self) -> &str {
        if self.state == "running" && self.lease_until < clock::now() { "interrupted" } else { &self.state }
    }
}

impl Store {
    /// Creates an idle conversation without entries.
    pub async fn create_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        let row = ConversationRow { state: "idle".to_owned(), ..row.clone() };
        let _: Vec<AnyRow> = self.write_one(row.insert(clock::now())).await?;
        Ok(())
    }

    /// Creates a conversation without entries and begins its first run, in one write. It survives the end of the process, but
    /// not a power cut, until the run writes its first entry, which is synced.
    pub async fn begin_conversation(
        &self,
        row: &ConversationRow,
        run_id: &str,
    ) -> Result<RunLease, StoreError> {
        let now = clock::now();
        let row = ConversationRow {
            state: "running".to_owned(),
            run_id: Some(run_id.to_owned()),
            epoch: 1,
            lease_owner: Some(self.lease_owner.to_string()),
            lease_until: now + LEASE,
            ..row.clone()
        };
        let _: Vec<AnyRow> = self.write_as(Durability::ProcessCrash, vec![row.insert(now)]).await?;
        Ok(RunLease { conversation_id: row.id, run_id: run_id.to_owned(), epoch: row.epoch, entries: 0 })
    }

    /// Returns one conversation. With `principal`, only if it is theirs.
    pub async fn conversation(
        &self,
        id: &str,
        principal: Option<&str>,
    ) -> Result<Option<ConversationRow>, StoreError> {
        let select = Statement::new("SELECT ").sql(COLUMNS).sql(" FROM conversations WHERE id = ").value(id);
        Ok(self.read(select.and("principal = ", principal)).await?.into_iter().next())
    }

    /// Returns conversations, the latest first: at most `limit` of those changed before `before`.
    pub async fn conversations(
        &self,
        principal: Option<&str>,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<ConversationRow>, StoreError> {
        let select = Statement::new("SELECT ").sql(COLUMNS).sql(" FROM conversations WHERE 1 = 1");
        let select = select.and("principal = ", principal).and("updated_at < ", before);
        self.read(select.sql(" ORDER BY updated_at DESC, id DESC LIMIT ").value(limit as i64)).await
    }

    /// Changes the title. Returns whether there is such a conversation.
    pub async fn rename_conversation(
        &self,
        id: &str,
        principal: Option<&str>,
        title: &str,
    ) -> Result<bool, StoreError> {
        let statement = Statement::new("UPDATE conversations SET title = ").value(title);
        let statement = statement.sql(" WHERE id = ").value(id).and("principal = ", principal);
        let renamed: Vec<AnyRow> = self.write_one(statement.sql(" RETURNING id")).await?;
        Ok(!renamed.is_empty())
    }

    /// Deletes a conversation and everything that is kept of it. Returns whether there was one.
    pub async fn delete_conversation(&self, id: &str, principal: Option<&str>) -> Result<bool, StoreError> {
        let Some(found) = self.conversation(id, principal).await? else { return Ok(false) };
        let delete = |sql: &'static str| Statement::new(sql).value(id);
        // Another principal may have results under the same id; only those of the owner belong to the conversation.
        let results = delete("DELETE FROM results WHERE conversation_id = ");
        let statements = vec![
            delete("DELETE FROM entries WHERE conversation_id = "),
            delete("DELETE FROM approvals WHERE conversation_id = "),
            results.sql(" AND principal = ").value(found.principal.as_str()),
            delete("DELETE FROM conversations WHERE id = ").sql(" RETURNING id"),
        ];
        let deleted: Vec<AnyRow> = self.write(statements).await?;
        self.delete_lost_chunks().await?;
        Ok(!deleted.is_empty())
    }

    /// Deletes conversations that have not changed since `before` and are not running. Returns how many.
    pub async fn delete_old_conversations(&self, before: i64) -> Result<usize, StoreError> {
        let old = |sql: &'static str| Statement::new(sql).value(before);
        let of = |table: &'static str| {
            let start = Statement::new("DELETE FROM ").sql(table).sql(" WHERE conversation_id IN (");
            let select = "SELECT id FROM conversations WHERE state <> 'running' AND updated_at < ";
            start.sql(select).value(before).sql(")")
        };
        let conversations = old("DELETE FROM conversations WHERE state <> 'running' AND updated_at < ");
        let statements = vec![of("entries"), of("approvals"), conversations.sql(" RETURNING id")];
        let deleted: Vec<AnyRow> = self.write(statements).await?;
        Ok(deleted.len())
    }

    /// Ends the leases of the runs that an earlier process of this owner left behind.
    pub async fn end_leases(&self) -> Result<(), StoreError> {
        let owned = " WHERE state = 'running' AND lease_owner = ";
        let of = |begin: &'static str| Statement::new(begin).sql(owned).value(&*self.lease_owner);
        // There rarely is one, and a write of a new process opens a connection first.
        let found: Vec<AnyRow> = self.read(of("SELECT id FROM conversations")).await?;
        if !found.is_empty() {
            let _: Vec<AnyRow> = self.write_one(of("UPDATE conversations SET lease_until = 0")).await?;
        }
        Ok(())
    }

    /// Begins a run, or continues one that waits. Of two that begin at once, one wins. Like
    /// [`Store::begin_conversation`], it is synced with the first entry of the run.
    pub async fn begin_run(
        &self,
        id: &str,
        principal: Option<&str>,
        run_id: &str,
        beginning: RunBeginning<'_>,
    ) -> Result<RunLease, BeginError> {
        let is_continued = matches!(beginning, RunBeginning::Decisions);
        let found = self.conversation(id, principal).await?.ok_or(BeginError::Unknown)?;
        if !is_continued && (found.entries >= MAX_ENTRIES || found.bytes >= MAX_BYTES) {
            return Err(BeginError::Full);
        }
        let now = clock::now();
        let statement =
            Statement::new("UPDATE conversations SET state = 'running', epoch = epoch + 1, run_id = ");
        let statement = statement.value(run_id).sql(", lease_owner = ").value(&*self.lease_owner);
        let statement =
            statement.sql(", lease_until = ").value(now + LEASE).sql(", updated_at = ").value(now);
        let owned = |statement: Statement| {
            statement.sql(" WHERE id = ").value(id).sql(" AND epoch = ").value(found.epoch)
        };
        let statement = match beginning {
            RunBeginning::Decisions => {
                owned(statement).sql(" AND state = 'waiting' AND run_id = ").value(run_id)
            }
            RunBeginning::Message { provider, model, title } => {
                let statement = statement.sql(", provider = ").value(provider).sql(", model = ").value(model);
                let statement = statement.sql(", title = CASE WHEN title = '' THEN ").value(title);
                owned(statement.sql(" ELSE title END"))
                    .sql(" AND (state IN ('idle', 'interrupted') OR (state = 'running' AND lease_until < ")
                    .value(now)
                    .sql("))")
            }
        };
        let statement = statement.sql(" RETURNING ").sql(COLUMNS);
        let begun: Vec<ConversationRow> = self.write_as(Durability::ProcessCrash, vec![statement]).await?;
        match begun.into_iter().next() {
            Some(row) => Ok(RunLease {
                conversation_id: row.id,
                run_id: run_id.to_owned(),
                epoch: row.epoch,
                entries: row.entries,
            }),
            None => Err(BeginError::Busy(found.run_id.unwrap_or_default())),
        }
    }

    /// Extends the lease of a run. Returns whether it still has one.
    pub async fn renew_lease(&self, lease: &RunLease) -> Result<bool, StoreError> {
        let statement = Statement::new("UPDATE conversations SET lease_until = ").value(clock::now() + LEASE);
        let statement = statement.sql(" WHERE id = ").value(lease.conversation_id.as_str());
        let statement = statement.sql(" AND epoch = ").value(lease.epoch);
        let renewed: Vec<AnyRow> = self.write_one(statement.sql(" RETURNING id")).await?;
        Ok(!renewed.is_empty())
    }

    /// Appends entries in one transaction. Returns false, and writes nothing, if the run lost its conversation.
    pub async fn append_entries(&self, lease: &RunLease, append: &EntryAppend) -> Result<bool, StoreError> {
        let EntryAppend { entries, approvals, state, input_tokens, output_tokens, cost_micros } = append;
        let now = clock::now();
        let bytes: usize =
            entries.iter().map(|it| it.body.len() + it.native.as_ref().map_or(0, String::len)).sum();
        let mut statements = vec![
            Statement::new("UPDATE conversations SET entries = entries + ")
                .value(entries.len() as i64)
                .sql(", bytes = bytes + ")
                .value(bytes as i64)
                .sql(", input_tokens = input_tokens + ")
                .value(*input_tokens)
                .sql(", output_tokens = output_tokens + ")
                .value(*output_tokens)
                .sql(", cost_micros = cost_micros + ")
                .value(*cost_micros)
                .sql(", updated_at = ")
                .value(now)
                .sql(", lease_until = ")
                .value(now + LEASE)
                .sql(", state = ")
                .value(*state)
                .sql(" WHERE id = ")
                .value(lease.conversation_id.as_str())
                .sql(" AND epoch = ")
                .value(lease.epoch),
        ];
        for (seq, entry) in (lease.entries + 1..).zip(entries) {
            statements.push(insert_entry(lease, seq, entry, now));
        }
        statements.extend(approvals.iter().map(|it| it.insert(lease)));
        let check = Statement::new("SELECT id FROM conversations WHERE id = ");
        let check = check.value(lease.conversation_id.as_str()).sql(" AND epoch = ").value(lease.epoch);
        statements.push(check);
        let written: Vec<AnyRow> = self.write_together(statements).await?;
        Ok(!written.is_empty())
    }

    /// Returns entries in order: at most `limit` of those after `after`.
    pub async fn entries(
        &self,
        conversation_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<EntryRow>, StoreError> {
        let select = "SELECT conversation_id, seq, run_id, kind, call_id, body, native, native_for, tokens, created_at \
            FROM entries WHERE conversation_id = ";
        let select = Statement::new(select).value(conversation_id).sql(" AND seq > ").value(after);
        self.read(select.sql(" ORDER BY seq LIMIT ").value(limit as i64)).await
    }
}

/// Inserts an entry if the run still owns the conversation.
fn insert_entry(lease: &RunLease, seq: i64, entry: &EntryRow, now: i64) -> Statement {
    let into = "INSERT INTO entries (conversation_id, seq, run_id, kind, call_id, body, native, native_for, tokens, \
        created_at) SELECT ";
    Statement::new(into)
        .values([
            lease.conversation_id.as_str().into(),
            seq.into(),
            lease.run_id.as_str().into(),
            entry.kind.as_str().into(),
            entry.call_id.as_deref().into(),
            entry.body.as_str().into(),
            entry.native.as_deref().into(),
            entry.native_for.as_deref().into(),
            entry.tokens.into(),
            now.into(),
        ])
        .owned_by(lease)
}

/// Returns the current time minus a duration, in microseconds since 1970.
pub fn time_before(duration: Duration) -> i64 {
    clock::now().saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}
