//! Tests for calls while the database or the spool accepts nothing.

use super::*;
use sqlx::{ConnectOptions, Executor, sqlite::SqliteConnectOptions};
use std::path::PathBuf;
use tempfile::TempDir;
use wharf_store::Location;

/// Longer than any test takes on an overloaded machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

fn call(name: &str, bytes: usize) -> CallRow {
    CallRow { request_id: name.into(), parameters: "x".repeat(bytes).into(), ..CallRow::default() }
}

async fn open(folder: &TempDir) -> (Store, PathBuf) {
    let path = folder.path().join("wharf.db");
    (Store::open(&Location::Sqlite(path.clone())).await.expect("the database opens"), path)
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Another process locks the database while the spool is above the size at which callers would wait.
#[tokio::test]
async fn no_call_waits_for_a_database_that_is_stuck() {
    let folder = TempDir::new().expect("a folder");
    let (store, path) = open(&folder).await;
    let status = Arc::<DatabaseStatus>::default();
    let (writer, task) = JournalWriter::open(store.clone(), Some(&path), status.clone()).expect("a journal");
    let mut other = SqliteConnectOptions::new().filename(&path).connect().await.expect("a connection");
    other.execute("BEGIN IMMEDIATE").await.expect("the write lock");
    let calling = async {
        assert!(
            writer.record(call("large", usize::try_from(MAX_BEHIND_BYTES).expect("a size")), false).await
        );
        until(|| status.is_away()).await;
        let begun = Instant::now();
        for name in ["one", "two", "three", "four"] {
            assert!(writer.record(call(name, 10), false).await);
            writer.flush().await;
        }
        assert!(begun.elapsed() < 2 * FLUSH_TIMEOUT, "they waited {:?}", begun.elapsed());
        assert_eq!((status.waiting(), status.lost(), status.is_full()), (5, 0, false));
        other.execute("ROLLBACK").await.expect("it is released");
        until(|| !status.is_away()).await;
        assert_eq!(status.waiting(), 0);
        writer.flush().await;
        assert!(store.call("four").await.expect("it is read").is_some());
        drop(writer);
    };
    let both = async { tokio::join!(calling, task) };
    timeout(TEST_TIMEOUT, both).await.expect("an end");
}

/// A client disconnects while its call waits for others to share the write.
#[tokio::test]
async fn a_call_whose_caller_has_disconnected_is_written() {
    let folder = TempDir::new().expect("a folder");
    let (store, path) = open(&folder).await;
    let (writer, task) = JournalWriter::open(store.clone(), Some(&path), Arc::default()).expect("a journal");
    let mut recording = Box::pin(writer.record(call("one", 1), true));
    assert!(futures_util::poll!(&mut recording).is_pending());
    let rows = || writer.direct.as_ref().expect("a spool").spool.lock().rows();
    assert_eq!(rows(), 0);
    drop(recording);
    assert_eq!(rows(), 1);
    drop(writer);
    timeout(TEST_TIMEOUT, task).await.expect("an end");
    assert!(store.call("one").await.expect("it is read").is_some());
}

/// Calls go to the spool while the database is away. Without a spool they are lost and reported as lost.
#[tokio::test]
async fn calls_that_can_be_neither_inserted_nor_spooled_are_counted_as_lost() {
    for (spool, lost) in [(Some("postgres"), 0), (None, 1)] {
        let folder = TempDir::new().expect("a folder");
        let (store, _) = open(&folder).await;
        let status = Arc::<DatabaseStatus>::default();
        let replay = SpoolReplay::open(spool.map(|it| folder.path().join(it)).as_deref()).expect("a spool");
        let (requests, requested) = mpsc::channel(MAX_QUEUED_ROWS);
        let (flushes, flushed) = mpsc::unbounded_channel();
        let writer = JournalWriter { requests, flushes, status: status.clone(), direct: None };
        let task = WriterTask {
            store: store.clone(),
            replay,
            status: status.clone(),
            // Like PostgreSQL.
            spools_first: false,
            flushes: Vec::new(),
            begun: Arc::default(),
        };
        let calling = async {
            status.set_away(true);
            assert_eq!(writer.record(call("one", 1), false).await, lost == 0);
            assert_eq!((status.waiting(), status.lost()), (1 - lost, lost));
            assert_eq!(status.is_full(), lost > 0);
            status.set_away(false);
            assert!(writer.record(call("two", 1), false).await);
            drop(writer);
        };
        tokio::join!(calling, task.run(requested, flushed));
        assert!(!status.is_full() && status.waiting() == 0);
        let is_kept = async |name| store.call(name).await.expect("it is read").is_some();
        assert_eq!((is_kept("one").await, is_kept("two").await), (lost == 0, true));
    }
}
