//! The `sessions` table: handshake-era MCP sessions, so that any replica can serve a client's next request.

use crate::{
    Change, Store, StoreError,
    rows::{AnyRow, plain_row},
    statement::Statement,
};
use std::time::Duration;

const COLUMNS: &str = "session_key, principal, version, capabilities, client_info, log_level, watched";

/// One MCP session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRow {
    /// Hash of the session id.
    pub session_key: String,
    /// The authenticated principal that opened the session, if any.
    pub principal: Option<String>,
    /// Negotiated protocol version.
    pub version: String,
    /// Client capabilities, as JSON.
    pub capabilities: String,
    /// Client name and version, as JSON.
    pub client_info: Option<String>,
    /// Minimum level of log messages that the client wants.
    pub log_level: Option<String>,
    /// Subscribed resources, as a JSON array.
    pub watched: String,
}

plain_row!(SessionRow { session_key, principal, version, capabilities, client_info, log_level, watched });

impl Store {
    /// Stores a new session and deletes expired ones. Sends no notification, because no replica can have cached the
    /// session.
    pub async fn begin_session(&self, session: &SessionRow, life: Duration) -> Result<(), StoreError> {
        let expired = Statement::new("DELETE FROM sessions WHERE expires_at <= ").sql(self.now());
        let _: Vec<AnyRow> = self.write(vec![expired, self.upsert_session(session, life)]).await?;
        Ok(())
    }

    /// Stores a changed session, or extends the life of one in use, and notifies the other replicas.
    pub async fn update_session(&self, session: &SessionRow, life: Duration) -> Result<(), StoreError> {
        let change = Change::Session(session.session_key.clone());
        let _: Vec<AnyRow> = self.write_and_notify(&change, vec![self.upsert_session(session, life)]).await?;
        Ok(())
    }

    /// Returns a session unless it has expired.
    pub async fn session(&self, key: &str) -> Result<Option<SessionRow>, StoreError> {
        let statement = Statement::new("SELECT ").sql(COLUMNS).sql(" FROM sessions WHERE session_key = ");
        let statement = statement.value(key).sql(" AND expires_at > ").sql(self.now());
        Ok(self.read(statement).await?.into_iter().next())
    }

    /// Deletes a session and notifies the other replicas. Returns whether it existed.
    pub async fn end_session(&self, key: &str) -> Result<bool, StoreError> {
        let statement = Statement::new("DELETE FROM sessions WHERE session_key = ").value(key);
        let statement = statement.sql(" RETURNING session_key");
        let change = Change::Session(key.to_owned());
        let ended: Vec<AnyRow> = self.write_and_notify(&change, vec![statement]).await?;
        Ok(!ended.is_empty())
    }

    fn upsert_session(&self, session: &SessionRow, life: Duration) -> Statement {
        let life = i64::try_from(life.as_micros()).unwrap_or(i64::from(u32::MAX));
        Statement::new("INSERT INTO sessions (")
            .sql(COLUMNS)
            .sql(", expires_at) VALUES (")
            .values([
                session.session_key.as_str().into(),
                session.principal.as_deref().into(),
                session.version.as_str().into(),
                session.capabilities.as_str().into(),
                session.client_info.as_deref().into(),
                session.log_level.as_deref().into(),
                session.watched.as_str().into(),
            ])
            .sql(", ")
            .sql(self.now())
            .sql(" + ")
            .value(life)
            .sql(
                ") ON CONFLICT (session_key) DO UPDATE SET log_level = excluded.log_level, \
                 watched = excluded.watched, expires_at = excluded.expires_at",
            )
    }
}
