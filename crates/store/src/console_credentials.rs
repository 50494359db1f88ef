//! The `console_credentials` table: tickets and sessions of the console, so that any replica accepts them.

use crate::{
    Change, Store, StoreError,
    rows::{AnyRow, plain_row},
    statement::Statement,
};
use std::time::Duration;

const COLUMNS: &str = "credential_key, kind, principal, binding, created_at, expires_at";

/// One ticket or session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialRow {
    /// Hash of the credential.
    pub credential_key: String,
    /// `ticket` or `session`.
    pub kind: String,
    /// Name of the principal.
    pub principal: String,
    /// Hash of the credential and the token it was issued for.
    pub binding: String,
    /// Time of issue, in microseconds since 1970.
    pub created_at: i64,
    /// Time of expiry, in microseconds since 1970.
    pub expires_at: i64,
}

plain_row!(CredentialRow { credential_key, kind, principal, binding, created_at, expires_at });

struct PrincipalCount {
    principal: String,
    credentials: i64,
}

plain_row!(PrincipalCount { principal, credentials });

impl Store {
    /// Stores a ticket and deletes expired credentials. The row's life begins now; `life` is how long it is valid. Returns
    /// the row with its times, or `None` if the principal has `limit` tickets. Replicas cannot exceed the limit together.
    pub async fn add_ticket(
        &self,
        row: &CredentialRow,
        life: Duration,
        limit: usize,
    ) -> Result<Option<CredentialRow>, StoreError> {
        let insert =
            self.insert_credential(row, life).sql(" WHERE (SELECT count(*) FROM console_credentials");
        let insert = insert.sql(" WHERE kind = 'ticket' AND principal = ").value(row.principal.as_str());
        let insert = insert.sql(" AND expires_at > ").sql(self.now()).sql(") < ").value(saturating(limit));
        let mut statements = self.before_counting(&row.principal);
        statements.push(insert.sql(" RETURNING ").sql(COLUMNS));
        Ok(self.write(statements).await?.into_iter().next())
    }

    /// Stores a session as [`Store::add_ticket`] does, and ends the sessions of the principal beyond `limit`, those first
    /// that expire first. Returns their keys.
    pub async fn add_console_session(
        &self,
        row: &CredentialRow,
        life: Duration,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let surplus = Statement::new("DELETE FROM console_credentials WHERE credential_key IN (SELECT");
        let surplus = surplus.sql(" credential_key FROM console_credentials WHERE kind = 'session'");
        let surplus = surplus.sql(" AND principal = ").value(row.principal.as_str());
        let surplus = surplus.sql(" AND credential_key <> ").value(row.credential_key.as_str());
        let surplus = surplus.sql(" ORDER BY expires_at DESC LIMIT 1000000 OFFSET ");
        let surplus = surplus.value(saturating(limit.saturating_sub(1))).sql(") RETURNING ").sql(COLUMNS);
        let mut statements = self.before_counting(&row.principal);
        statements.extend([self.insert_credential(row, life), surplus]);
        let ended: Vec<CredentialRow> = self.write(statements).await?;
        Ok(ended.into_iter().map(|it| it.credential_key).collect())
    }

    /// Deletes expired credentials. On PostgreSQL, transactions that count credentials of the same principal wait for each
    /// other; SQLite has one writer anyway.
    fn before_counting(&self, principal: &str) -> Vec<Statement> {
        // The function returns no NULL, so this selects no row.
        let lock = Statement::new("SELECT 1 WHERE pg_advisory_xact_lock(hashtext(").value(principal);
        let lock = self.is_shared().then(|| lock.sql(")) IS NULL"));
        let expired = Statement::new("DELETE FROM console_credentials WHERE expires_at <= ").sql(self.now());
        lock.into_iter().chain([expired]).collect()
    }

    fn insert_credential(&self, row: &CredentialRow, life: Duration) -> Statement {
        let life = i64::try_from(life.as_micros()).unwrap_or(i64::from(u32::MAX));
        let texts = [&row.credential_key, &row.kind, &row.principal, &row.binding];
        Statement::new("INSERT INTO console_credentials (")
            .sql(COLUMNS)
            .sql(") SELECT ")
            .values(texts.map(|it| it.as_str().into()))
            .sql(", ")
            .sql(self.now())
            .sql(", ")
            .sql(self.now())
            .sql(" + ")
            .value(life)
    }

    /// Deletes a ticket and returns it, unless it has expired. Only one caller gets it.
    pub async fn take_ticket(&self, key: &str) -> Result<Option<CredentialRow>, StoreError> {
        let statement = Statement::new("DELETE FROM console_credentials WHERE credential_key = ").value(key);
        let statement = statement.sql(" AND kind = 'ticket' AND expires_at > ").sql(self.now());
        let taken = self.write(vec![statement.sql(" RETURNING ").sql(COLUMNS)]).await?;
        Ok(taken.into_iter().next())
    }

    /// Returns a session of the console, unless it has expired.
    pub async fn console_session(&self, key: &str) -> Result<Option<CredentialRow>, StoreError> {
        let statement = Statement::new("SELECT ").sql(COLUMNS).sql(" FROM console_credentials");
        let statement = statement.sql(" WHERE kind = 'session' AND credential_key = ").value(key);
        let found = self.read(statement.sql(" AND expires_at > ").sql(self.now())).await?;
        Ok(found.into_iter().next())
    }

    /// Moves the expiry of a session.
    pub async fn extend_console_session(&self, key: &str, expires_at: i64) -> Result<(), StoreError> {
        let statement = Statement::new("UPDATE console_credentials SET expires_at = ").value(expires_at);
        let statement = statement.sql(" WHERE kind = 'session' AND credential_key = ").value(key);
        let _: Vec<AnyRow> = self.write(vec![statement]).await?;
        Ok(())
    }

    /// Ends a session and notifies the other replicas.
    pub async fn end_console_session(&self, key: &str) -> Result<(), StoreError> {
        let statement = Statement::new("DELETE FROM console_credentials WHERE kind = 'session'");
        let statement = statement.sql(" AND credential_key = ").value(key);
        let change = Change::Session(key.to_owned());
        let _: Vec<AnyRow> = self.write_and_notify(&change, vec![statement]).await?;
        Ok(())
    }

    /// Counts the valid sessions of each principal.
    pub async fn count_console_sessions(&self) -> Result<Vec<(String, usize)>, StoreError> {
        let statement = Statement::new("SELECT principal, count(*) AS credentials FROM console_credentials");
        let statement = statement.sql(" WHERE kind = 'session' AND expires_at > ").sql(self.now());
        let rows: Vec<PrincipalCount> = self.read(statement.sql(" GROUP BY principal")).await?;
        let count = |it: i64| usize::try_from(it).unwrap_or_default();
        Ok(rows.into_iter().map(|it| (it.principal, count(it.credentials))).collect())
    }
}

fn saturating(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
