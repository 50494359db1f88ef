//! Limits the age and the size of the journal. Deletes old calls in small batches with pauses, so that other queries
//! are not delayed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time;
use wharf_config::{JournalSettings, Limit};
use wharf_store::{Location, Store, StoreError};

/// Default limits for SQLite.
const DEFAULT_KEEP: Duration = Duration::from_secs(30 * 86_400);
const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// Delay of the first purge after the start, and the interval after that.
const FIRST_PURGE_DELAY: Duration = Duration::from_secs(1);
const PURGE_INTERVAL: Duration = Duration::from_secs(600);

/// Number of calls that are deleted at once, and the pause between batches.
const PURGE_BATCH: usize = 500;
const PURGE_PAUSE: Duration = Duration::from_millis(50);

/// The limits of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) keep: Option<Duration>,
    pub(crate) max_bytes: Option<u64>,
}

impl Retention {
    /// Returns the operator's limits or the defaults. PostgreSQL has no default limits.
    pub(crate) fn of(settings: &JournalSettings, database: Option<&Location>) -> Retention {
        let is_file = matches!(database, Some(Location::Sqlite(_)));
        fn limit<T: Copy>(said: Option<Limit<T>>, usual: Option<T>) -> Option<T> {
            match said {
                Some(Limit::At(limit)) => Some(limit),
                Some(Limit::Unlimited) => None,
                None => usual,
            }
        }
        Retention {
            keep: limit(settings.keep, is_file.then_some(DEFAULT_KEEP)),
            max_bytes: limit(settings.max_bytes, is_file.then_some(DEFAULT_MAX_BYTES)),
        }
    }

    /// Purges old calls periodically. Never returns.
    pub(crate) async fn run(self, store: Store) {
        time::sleep(FIRST_PURGE_DELAY).await;
        loop {
            match self.purge(&store).await {
                Ok(0) => {}
                Ok(calls) => tracing::info!(target: "wharf::journal", calls, "old calls are deleted"),
                Err(error) => {
                    tracing::warn!(target: "wharf::journal", "old calls could not be deleted: {error}");
                }
            }
            time::sleep(PURGE_INTERVAL).await;
        }
    }

    /// Deletes calls that are too old, then the oldest ones while the journal is too large. Returns the number of
    /// deleted calls.
    async fn purge(self, store: &Store) -> Result<usize, StoreError> {
        let mut deleted = 0;
        if let Some(keep) = self.keep {
            let oldest = SystemTime::now().checked_sub(keep).unwrap_or(UNIX_EPOCH);
            let micros = oldest.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
            deleted += delete(store, i64::try_from(micros).ok(), usize::MAX).await?;
        }
        if let Some(max_bytes) = self.max_bytes {
            let size = store.journal_size().await?;
            deleted += delete(store, None, surplus(size.calls, size.bytes, max_bytes)).await?;
        }
        Ok(deleted)
    }
}

/// Estimates how many calls to delete, assuming that all have about the same size. Leaves a tenth of the limit free
/// for new calls.
fn surplus(calls: u64, bytes: u64, max_bytes: u64) -> usize {
    if bytes <= max_bytes {
        return 0;
    }
    let share = (bytes - max_bytes / 10 * 9) as f64 / bytes as f64;
    (calls as f64 * share).ceil() as usize
}

async fn delete(store: &Store, before: Option<i64>, most: usize) -> Result<usize, StoreError> {
    let mut deleted = 0;
    while deleted < most {
        let batch = PURGE_BATCH.min(most - deleted);
        let gone = store.delete_oldest_calls(before, batch).await?;
        deleted += gone;
        if gone < batch {
            break;
        }
        time::sleep(PURGE_PAUSE).await;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tempfile::TempDir;
    use wharf_store::{CallFilter, CallRow};

    const DAY: Duration = Duration::from_secs(86_400);

    async fn store(folder: &TempDir) -> Store {
        let location = Location::Sqlite(folder.path().join("wharf.db"));
        Store::open(&location).await.expect("the database opens")
    }

    /// Calls of this size, one per minute, the last one a minute ago.
    fn calls(count: u64, bytes: usize) -> Vec<CallRow> {
        let now = SystemTime::now();
        let call = |number| {
            let began = now - Duration::from_secs(60) * u32::try_from(count - number).expect("a few");
            let micros = began.duration_since(UNIX_EPOCH).expect("a time").as_micros();
            CallRow {
                request_id: format!("call-{number:06}").into(),
                execution_start: i64::try_from(micros).expect("a time"),
                parameters: "x".repeat(bytes).into(),
                ..CallRow::default()
            }
        };
        (0..count).map(call).collect()
    }

    async fn kept(store: &Store) -> Vec<Arc<str>> {
        let page = store.list_calls(&CallFilter::default(), None, 10_000).await.expect("they are read");
        page.calls.into_iter().map(|it| it.request_id).collect()
    }

    #[tokio::test]
    async fn calls_that_are_too_old_are_deleted_batch_by_batch() {
        let folder = TempDir::new().expect("a folder");
        let store = store(&folder).await;
        store.record_calls(calls(2_000, 10)).await.expect("they are written");
        let retention = Retention { keep: Some(DAY), max_bytes: None };
        // A day has 1,440 minutes.
        assert!((559..=562).contains(&retention.purge(&store).await.expect("they are deleted")));
        assert_eq!(&*kept(&store).await[0], "call-001999", "the newest stay");
        assert_eq!(retention.purge(&store).await.expect("nothing is wrong"), 0);
    }

    #[tokio::test]
    async fn the_oldest_calls_are_deleted_while_the_journal_is_too_large() {
        let folder = TempDir::new().expect("a folder");
        let store = store(&folder).await;
        store.record_calls(calls(1_000, 4_096)).await.expect("they are written");
        let before = store.journal_size().await.expect("a size");
        assert_eq!(before.calls, 1_000);
        // The tables of everything else take a part of it.
        let retention = Retention { keep: None, max_bytes: Some(2 << 20) };
        retention.purge(&store).await.expect("they are deleted");
        let after = store.journal_size().await.expect("a size");
        assert!(after.bytes <= 2 << 20 && after.calls > 100, "{before:?} {after:?}");
        assert_eq!(&*kept(&store).await[0], "call-000999", "the newest stay");
    }

    #[test]
    fn a_file_has_limits_and_a_server_has_none_unless_it_is_said() {
        let file = Location::Sqlite("wharf.db".into());
        let server = Location::Postgres("postgres://db/wharf".to_owned());
        let usual = JournalSettings::default();
        let expected = Retention { keep: Some(30 * DAY), max_bytes: Some(1 << 30) };
        assert_eq!(Retention::of(&usual, Some(&file)), expected);
        assert_eq!(Retention::of(&usual, Some(&server)), Retention { keep: None, max_bytes: None });
        let said = JournalSettings { keep: Some(Limit::Unlimited), max_bytes: Some(Limit::At(7)) };
        for location in [&file, &server] {
            assert_eq!(Retention::of(&said, Some(location)), Retention { keep: None, max_bytes: Some(7) });
        }
    }
}
