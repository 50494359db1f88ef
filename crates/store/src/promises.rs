//! The table of promises: calls that carry a key of their caller's and are made once, whatever is lost on the way.

use crate::{
    Store, StoreError, clock,
    rows::{Touched, plain_row},
    statement::Statement,
};
use std::time::Duration;

const COLUMNS: &str = "principal, promise_key, fingerprint, begun_at, request_id, status, answer";

/// One call that is made once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Whose call it is.
    pub principal: String,
    /// What they call it.
    pub promise_key: String,
    /// What the call was, so that another one is noticed.
    pub fingerprint: String,
    /// When it began, in microseconds since 1970; set by the store.
    pub begun_at: i64,
    /// What the call is known by in the table of calls, once it is over.
    pub request_id: Option<String>,
    /// The status it was answered with, once it is over.
    pub status: Option<i64>,
    /// What it was answered with, unless that was too long to be kept.
    pub answer: Option<String>,
}

plain_row!(Promise { principal, promise_key, fingerprint, begun_at, request_id, status, answer });

/// What became of trying to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nobody has begun it: it is the caller's to make.
    Ours,
    /// It was begun before.
    Known(Promise),
}

impl Store {
    /// Begins a promised call, or says what is known of it. Of two who try at the same time one begins. What is older than
    /// `kept` is forgotten.
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
        // Given back in between: then whoever asks may try again.
        Ok(found.into_iter().next().map_or_else(|| Claim::Known(promise.clone()), Claim::Known))
    }

    /// Notes how a promised call ended.
    pub async fn fulfil(&self, promise: &Promise) -> Result<(), StoreError> {
        let statement =
            Statement::new("UPDATE promises SET request_id = ").value(promise.request_id.as_deref());
        let statement = statement.sql(", status = ").value(promise.status);
        let statement = statement.sql(", answer = ").value(promise.answer.as_deref());
        let _: Vec<Touched> = self.write_one(narrowed(statement.sql(" WHERE 1 = 1"), promise)).await?;
        Ok(())
    }

    /// Gives a promise back whose call has certainly had no effect, so that it can be tried again.
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
