//! Keeps results in the database, and connects the stored results to a runtime.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time;
use wharf_config::ResultQuotas;
use wharf_runtime::result_handle::{
    DocumentKind, MemoryResults, NewResult, QueryProgram, ResultFuture, ResultHandles, ResultOwner,
    ResultStore, StoredResult, new_result_id,
};
use wharf_store::{ResultLimits, ResultRow, Store, StoreError};

/// Interval at which expired results are deleted.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Results in the database.
#[derive(Clone, Debug)]
pub(crate) struct StoredResults {
    store: Store,
    limits: ResultLimits,
}

impl StoredResults {
    pub(crate) fn new(store: Store, quotas: ResultQuotas) -> StoredResults {
        let limit = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
        let ResultQuotas { per_principal, count, total } = quotas;
        let limits =
            ResultLimits { per_principal: limit(per_principal), count: limit(count), total: limit(total) };
        StoredResults { store, limits }
    }

    /// Returns the handles for a runtime. `program` is this program, which also runs queries.
    pub(crate) fn handles(&self, program: Option<PathBuf>) -> ResultHandles {
        ResultHandles { store: Arc::new(self.clone()), query: program.map(QueryProgram) }
    }

    /// Deletes expired results periodically. Never returns.
    pub(crate) async fn sweep(self) {
        loop {
            if let Err(error) = self.store.delete_expired_results().await {
                tracing::warn!(target: "wharf::results", "expired results could not be deleted: {error}");
            }
            time::sleep(SWEEP_INTERVAL).await;
        }
    }

    async fn write(&self, new: NewResult) -> Result<StoredResult, String> {
        let id = new_result_id();
        let stored = new.to_stored(id, None, SystemTime::now());
        let row = ResultRow {
            id: stored.id,
            conversation_id: stored.conversation,
            principal: new.owner.principal.to_string(),
            request_id: new.request_id.to_string(),
            source: stored.source,
            tool_name: stored.tool,
            kind: stored.kind.as_str().to_owned(),
            bytes: i64::try_from(stored.bytes).unwrap_or(i64::MAX),
            sha256: stored.sha256,
            expires_at: SystemTime::now().checked_add(new.keep).map(micros),
            ..ResultRow::default()
        };
        let written = self.store.put_result(&row, new.document.text.as_bytes(), self.limits).await;
        let written = written.map_err(|error| error.to_string())?;
        written.map(stored_result).ok_or_else(|| "it is larger than `[results]` allows".to_owned())
    }
}

impl ResultStore for StoredResults {
    fn put(&self, new: NewResult) -> ResultFuture<'_, StoredResult> {
        Box::pin(self.write(new))
    }

    fn get<'a>(
        &'a self,
        owner: &'a ResultOwner,
        id: &'a str,
    ) -> ResultFuture<'a, Option<(StoredResult, Arc<str>)>> {
        Box::pin(async move {
            let number = id.strip_prefix("r-").and_then(|it| it.parse::<i64>().ok());
            let numbered = owner.conversation.as_deref().zip(number);
            let found = self.store.find_result(&owner.principal, id, numbered).await;
            let found = found.map_err(|error| error.to_string())?;
            Ok(found.and_then(|(row, content)| {
                let text = String::from_utf8(content).ok()?;
                Some((stored_result(row), text.into()))
            }))
        })
    }

    fn list<'a>(&'a self, principal: &'a str) -> ResultFuture<'a, Vec<StoredResult>> {
        Box::pin(async move {
            let rows = self.store.results_of(principal).await;
            Ok(rows.map_err(|error| error.to_string())?.into_iter().map(stored_result).collect())
        })
    }

    fn delete<'a>(&'a self, principal: &'a str, id: &'a str) -> ResultFuture<'a, bool> {
        Box::pin(async move {
            let deleted = self.store.delete_result(principal, id).await;
            deleted.map_err(|error: StoreError| error.to_string())
        })
    }
}

/// Returns handles to results in a temporary folder, for a command that ends with its conversation.
pub(crate) fn temporary(quotas: ResultQuotas, program: Option<PathBuf>) -> ResultHandles {
    let results = MemoryResults::in_temporary_folder(quotas);
    ResultHandles { store: Arc::new(results), query: program.map(QueryProgram) }
}

fn stored_result(row: ResultRow) -> StoredResult {
    StoredResult {
        handle: row.number.map(|it| format!("r-{it}")),
        id: row.id,
        conversation: row.conversation_id,
        source: row.source,
        tool: row.tool_name,
        kind: DocumentKind::parse(&row.kind).unwrap_or(DocumentKind::Text),
        bytes: row.bytes.cast_unsigned(),
        sha256: row.sha256,
        created_at: time_of(row.created_at),
        expires_at: row.expires_at.map(time_of),
    }
}

fn time_of(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn micros(at: SystemTime) -> i64 {
    i64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()).unwrap_or(i64::MAX)
}
