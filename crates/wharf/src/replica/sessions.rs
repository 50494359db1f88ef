//! Stores legacy-era MCP sessions in the database, so that a client can continue at any replica.

use super::QUERY_TIMEOUT;
use crate::journal::DatabaseStatus;
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};
use tokio::time::timeout;
use wharf_mcp::{
    Raw,
    serve::{
        LogLevel,
        http::{SessionStore, StoreFuture, StoreUnavailable, StoredSession},
    },
};
use wharf_store::{SessionRow, Store, StoreError};

/// How long an unused session is kept.
const SESSION_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Session store in the shared database.
#[derive(Debug)]
pub(crate) struct SharedSessions {
    store: Store,
    database: Arc<DatabaseStatus>,
}

impl SharedSessions {
    pub(super) fn new(store: Store, database: Arc<DatabaseStatus>) -> SharedSessions {
        SharedSessions { store, database }
    }

    /// Runs a query with a timeout. Fails at once if the database is unreachable.
    async fn run_query<T>(
        &self,
        query: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreUnavailable> {
        if self.database.is_away() {
            return Err(StoreUnavailable);
        }
        match timeout(QUERY_TIMEOUT, query).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                tracing::warn!(target: "wharf::replica", "a session cannot be shared with other replicas: {error}");
                Err(StoreUnavailable)
            }
            Err(_) => Err(StoreUnavailable),
        }
    }
}

impl SessionStore for SharedSessions {
    fn key(&self, name: &str) -> String {
        Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn create_session<'a>(&'a self, key: &'a str, session: StoredSession) -> StoreFuture<'a, ()> {
        Box::pin(
            async move { self.run_query(self.store.begin_session(&row(key, &session), SESSION_TTL)).await },
        )
    }

    fn update_session<'a>(&'a self, key: &'a str, session: StoredSession) -> StoreFuture<'a, ()> {
        Box::pin(
            async move { self.run_query(self.store.update_session(&row(key, &session), SESSION_TTL)).await },
        )
    }

    fn find<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<StoredSession>> {
        Box::pin(async move { Ok(self.run_query(self.store.session(key)).await?.and_then(session)) })
    }

    fn remove_session<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.run_query(self.store.end_session(key)).await.map(|_| ()) })
    }
}

fn row(key: &str, session: &StoredSession) -> SessionRow {
    SessionRow {
        session_key: key.to_owned(),
        principal: session.owner.as_deref().map(str::to_owned),
        version: session.version.clone(),
        capabilities: session.capabilities.as_str().to_owned(),
        client_info: session.info.as_ref().map(|it| it.as_str().to_owned()),
        log_level: session.log_level.map(|it| it.name().to_owned()),
        watched: serde_json::json!(session.watched).to_string(),
    }
}

/// Converts a row to a session. Returns `None` if the row cannot be decoded.
fn session(row: SessionRow) -> Option<StoredSession> {
    let raw = |text: String| Raw::parse(text).ok();
    let watched: BTreeSet<String> = serde_json::from_str(&row.watched).ok()?;
    Some(StoredSession {
        owner: row.principal.map(Arc::from),
        version: row.version,
        capabilities: raw(row.capabilities)?,
        info: row.client_info.and_then(raw),
        log_level: row.log_level.as_deref().and_then(LogLevel::named),
        watched,
    })
}
