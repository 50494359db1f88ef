//! The `promises` table: idempotency keys, so that a call with a key is executed at most once even if a client
//! retries.

use crate::{
    Store, StoreError, clock,
    rows::{AnyRow, plain_row},
    statement::Statement,
};
use std::time::Duration;

const COLUMNS: &str = "principal, promise_key, fingerprint, begun_at, request_id, status, answer";

/// Idempotency record of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Principal that made the call.
    pub principal: String,
    /// Idempotency key that the client chose.
    pub promise_key: String,
    /// Hash of the request, to detect a key that is reused for a different call.
    pub fingerprint: String,
    /// Start time, in microseconds since 1970; set by the store.
    pub begun_at: i64,
    /// Id of the call record, once the call has ended.
    pub request_id: Option<String>,
    /// Status of the response, once the call has ended.
    pub status: Option<i64>,
    /// Response body, unless it was too long to store.
    pub answer: Option<String>,
}

plain_row!(IdempotencyRecord { principal, promise_key, fingerprint, begun_at, request_id, status, answer });

/// Outcome of claiming an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyClaim {
    /// The key was free: the caller must execute the call.
    Claimed,
    /// The key is already in use.
    Known(IdempotencyRecord),
}

impl Store {
    /// Claims the key of a call, or returns the existing record. Of two concurrent claims, one wins. Also deletes
    /// records older than `kept`.
    pub async fn claim_key(
        &self,
        record: &IdempotencyRecord,
        kept: Duration,
    ) -> Result<KeyClaim, StoreError> {
        let IdempotencyRecord { principal, promise_key, fingerprint, .. } = record;
        let now = clock::now();
        let oldest = now.saturating_sub(i64::try_from(kept.as_micros()).unwrap_or(i64::MAX));
        let forget = Statement::new("DELETE FROM promises WHERE begun_at < ").value(oldest);
        let begin = Statement::new("INSERT INTO promises (")
            .sql(COLUMNS)
            .sql(") VALUES (")
            .values([
                principal.as_str().into(),
                promise_key.as_str().into(),
                fingerprint.as_str().into(),
                now.into(),
                None::<&str>.into(),
                None::<i64>.into(),
                None::<&str>.into(),
            ])
            .sql(") ON CONFLICT (principal, promise_key) DO NOTHING RETURNING begun_at");
        let begun: Vec<AnyRow> = self.write(vec![forget, begin]).await?;
        if !begun.is_empty() {
            return Ok(KeyClaim::Claimed);
        }
        let select = Statement::new("SELECT ").sql(COLUMNS).sql(" FROM promises WHERE 1 = 1");
        let found: Vec<IdempotencyRecord> = self.read(narrowed(select, record)).await?;
        // Another request released the key between the two statements. The caller may retry.
        Ok(found.into_iter().next().map_or_else(|| KeyClaim::Known(record.clone()), KeyClaim::Known))
    }

    /// Records the outcome of a call.
    pub async fn complete_key(&self, record: &IdempotencyRecord) -> Result<(), StoreError> {
        let statement =
            Statement::new("UPDATE promises SET request_id = ").value(record.request_id.as_deref());
        let statement = statement.sql(", status = ").value(record.status);
        let statement = statement.sql(", answer = ").value(record.answer.as_deref());
        let _: Vec<AnyRow> = self.write_one(narrowed(statement.sql(" WHERE 1 = 1"), record)).await?;
        Ok(())
    }

    /// Releases a key whose call certainly had no effect, so that the client can retry.
    pub async fn release_key(&self, record: &IdempotencyRecord) -> Result<(), StoreError> {
        let statement = Statement::new("DELETE FROM promises WHERE 1 = 1");
        let _: Vec<AnyRow> = self.write_one(narrowed(statement, record)).await?;
        Ok(())
    }
}

fn narrowed(statement: Statement, record: &IdempotencyRecord) -> Statement {
    let statement = statement.and("principal = ", Some(record.principal.as_str()));
    statement.and("promise_key = ", Some(record.promise_key.as_str()))
}
