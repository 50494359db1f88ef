//! The `approvals` table: questions to people about calls, and their decisions.

use crate::{Store, StoreError, clock, rows::plain_row, run_lease::RunLease, statement::Statement};

const COLUMNS: &str = "id, conversation_id, run_id, call_id, kind, question, digest, decision, scope, reason, decided_by, \
    expires_at, decided_at";

/// One question. Times are in microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRow {
    /// Id.
    pub id: String,
    /// Conversation.
    pub conversation_id: String,
    /// Run that waits.
    pub run_id: String,
    /// Call that it is about.
    pub call_id: String,
    /// `call`, or the kind of input that a server asks for.
    pub kind: String,
    /// The question, as JSON.
    pub question: String,
    /// Digest of the call.
    pub digest: String,
    /// `allow` or `deny`, once decided.
    pub decision: Option<String>,
    /// `once` or `tool`, once decided.
    pub scope: Option<String>,
    /// Reason, if the decision has one.
    pub reason: Option<String>,
    /// Principal that decided.
    pub decided_by: Option<String>,
    /// Time after which the call is denied.
    pub expires_at: i64,
    /// Time of the decision.
    pub decided_at: Option<i64>,
}

plain_row!(ApprovalRow {
    id,
    conversation_id,
    run_id,
    call_id,
    kind,
    question,
    digest,
    decision,
    scope,
    reason,
    decided_by,
    expires_at,
    decided_at,
});

impl ApprovalRow {
    /// Inserts the question if the run still owns its conversation.
    pub(crate) fn insert(&self, lease: &RunLease) -> Statement {
        let into = "INSERT INTO approvals (id, conversation_id, run_id, call_id, kind, question, digest, expires_at) SELECT ";
        Statement::new(into)
            .values([
                self.id.as_str().into(),
                lease.conversation_id.as_str().into(),
                lease.run_id.as_str().into(),
                self.call_id.as_str().into(),
                self.kind.as_str().into(),
                self.question.as_str().into(),
                self.digest.as_str().into(),
                self.expires_at.into(),
            ])
            .owned_by(lease)
    }
}

impl Store {
    /// Returns one question.
    pub async fn approval(&self, id: &str) -> Result<Option<ApprovalRow>, StoreError> {
        let select = Statement::new("SELECT ").sql(COLUMNS).sql(" FROM approvals WHERE id = ").value(id);
        Ok(self.read(select).await?.into_iter().next())
    }

    /// Returns the questions of a run.
    pub async fn approvals_of(
        &self,
        conversation_id: &str,
        run_id: &str,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        let select = Statement::new("SELECT ").sql(COLUMNS).sql(" FROM approvals WHERE conversation_id = ");
        let select = select.value(conversation_id).sql(" AND run_id = ").value(run_id);
        self.read(select.sql(" ORDER BY id")).await
    }

    /// Returns the questions that wait for a decision, with their conversations' principals as a filter.
    pub async fn open_approvals(&self, principal: Option<&str>) -> Result<Vec<ApprovalRow>, StoreError> {
        let select = "SELECT a.id, a.conversation_id, a.run_id, a.call_id, a.kind, a.question, a.digest, a.decision, a.scope, \
            a.reason, a.decided_by, a.expires_at, a.decided_at FROM approvals a JOIN conversations c \
            ON c.id = a.conversation_id AND c.run_id = a.run_id WHERE a.decision IS NULL AND c.state = 'waiting'";
        let select = Statement::new(select).and("c.principal = ", principal);
        self.read(select.sql(" AND a.expires_at > ").value(clock::now()).sql(" ORDER BY a.id LIMIT 1000"))
            .await
    }

    /// Decides a question that is neither decided nor expired. Returns whether it was.
    pub async fn decide_approval(
        &self,
        id: &str,
        (decision, scope, reason): (&str, &str, Option<&str>),
        decided_by: &str,
    ) -> Result<bool, StoreError> {
        let now = clock::now();
        let statement = Statement::new("UPDATE approvals SET decision = ").value(decision);
        let statement = statement.sql(", scope = ").value(scope).sql(", reason = ").value(reason);
        let statement = statement.sql(", decided_by = ").value(decided_by).sql(", decided_at = ").value(now);
        let statement =
            statement.sql(" WHERE id = ").value(id).sql(" AND decision IS NULL AND expires_at > ");
        let statement = statement.value(now).sql(" RETURNING ").sql(COLUMNS);
        let decided: Vec<ApprovalRow> = self.write_one(statement).await?;
        Ok(!decided.is_empty())
    }

    /// Returns the waiting conversations whose questions are all decided or expired, with their runs.
    pub async fn decided_conversations(&self) -> Result<Vec<(String, String)>, StoreError> {
        let select = "SELECT c.id AS conversation_id, c.run_id AS run_id FROM conversations c WHERE c.state = 'waiting' \
            AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.conversation_id = c.id AND a.run_id = c.run_id \
            AND a.decision IS NULL AND a.expires_at > ";
        let select = Statement::new(select).value(clock::now()).sql(") LIMIT 1000");
        let rows: Vec<WaitingRow> = self.read(select).await?;
        Ok(rows.into_iter().map(|it| (it.conversation_id, it.run_id)).collect())
    }

    /// Returns whether a run waits for decisions, without reading the questions.
    pub async fn has_waiting_conversations(&self) -> Result<bool, StoreError> {
        let select = "SELECT id AS conversation_id, run_id FROM conversations WHERE state = 'waiting' \
            AND run_id IS NOT NULL LIMIT 1";
        let rows: Vec<WaitingRow> = self.read(Statement::new(select)).await?;
        Ok(!rows.is_empty())
    }
}

struct WaitingRow {
    conversation_id: String,
    run_id: String,
}

plain_row!(WaitingRow { conversation_id, run_id });
