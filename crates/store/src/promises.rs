//! The `promises` table: idempotency keys, so that a call with a key is executed at most once even if a client
//! retries.

use crate::{
    Store, StoreError, clock,
    rows::{Touched, plain_row},
    statement::Statement,
};
use std::time::Duration;

const COLUMNS: &str = "principal, promise_key, fingerprint, begun_at, request_id, status, answer";

/// Idempotency record of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promise {
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

plain_row!(Promise { principal, promise_key, fingerprint, begun_at, request_id, status, answer });

/// Outcome of claiming an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The key was free: the caller must execute the call.
    Ours,
    /// The key is already in use.
    Known(Promise),
}

impl Store {
    /// Claims the key of a call, or returns the existing record. Of two concurrent claims, one wins. Also deletes
    /// records older than `kept`.
    pub async fn claim(&self, promise: &Promise, kept: Duration) -> Result<Claim, StoreError> {
        let Promise { principal, promise_key, fingerprint, .. } = promise;
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
        let begun: Vec<Touched> = self.write(vec![forget, begin]).await?;
        if !begun.is_empty() {
            return Ok(Claim::Ours);
        }
        let select = Statement::new("SELECT ").sql(COLUMNS).sql(" FROM promises WHERE 1 = 1");
        let found: Vec<Promise> = self.read(narrowed(select, promise)).await?;
        // Another request released the key between the two statements. The caller may retry.
        Ok(found.into_iter().next().map_or_else(|| Claim::Known(promise.clone()), Claim::Known))
    }

    /// Records the outcome of a call.
    pub async fn fulfil(&self, promise: &Promise) -> Result<(), StoreError> {
        let statement =
            Statement::new("UPDATE promises SET request_id = ").value(promise.request_id.as_deref());
        let statement = statement.sql(", status = ").value(promise.status);
        let statement = statement.sql(", answer = ").value(promise.answer.as_deref());
        let _: Vec<Touched> = self.write_one(narrowed(statement.sql(" WHERE 1 = 1"), promise)).await?;
        Ok(())
    }

    /// Releases a key whose call certainly had no effect, so that the client can retry.
    pub async fn give_back(&self, promise: &Promise) -> Result<(), StoreError> {
        let statement = Statement::new("DELETE FROM promises WHERE 1 = 1");
        let _: Vec<Touched> = self.write_one(narrowed(statement, promise)).await?;
        Ok(())
    }
}

fn narrowed(statement: Statement, promise: &Promise) -> Statement {
    let statement = statement.and("principal = ", Some(promise.principal.as_str()));
    statement.and("promise_key = ", Some(promise.promise_key.as_str()))
}
