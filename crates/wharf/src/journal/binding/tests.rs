//! Tests for calls while the database or the spool accepts nothing.

use super::*;
use tempfile::TempDir;
use wharf_store::{CallRow, Location};

/// Longer than any test takes on an overloaded machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

fn call(name: &str, bytes: usize) -> CallRow {
    CallRow { request_id: name.to_owned(), parameters: "x".repeat(bytes), ..CallRow::default() }
}

async fn keep(binding: &Binding, row: &CallRow) -> bool {
    binding.spool(|out| entry::write_row(row, out)).await
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        time::sleep(Duration::from_millis(20)).await;
    }
}

/// Another process locks the database while the spool is above the size at which callers would wait.
#[tokio::test]
async fn nobody_waits_for_a_database_that_is_stuck() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("wharf.db");
    let store = Store::open(&Location::Sqlite(path.clone())).await.expect("the database opens");
    let reach = Arc::<Reach>::default();
    let (binding, writing) = Binding::open(store.clone(), &path, reach.clone()).await.expect("a journal");
    let other = rusqlite::Connection::open(&path).expect("a connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the right to write");
    let calling = async {
        assert!(keep(&binding, &call("large", usize::try_from(FULL).expect("a size"))).await);
        until(|| reach.is_away()).await;
        let begun = time::Instant::now();
        for name in ["one", "two", "three", "four"] {
            assert!(keep(&binding, &call(name, 10)).await);
            binding.settle().await;
        }
        assert!(begun.elapsed() < 2 * PATIENCE, "they waited {:?}", begun.elapsed());
        assert_eq!((reach.waiting(), reach.lost(), reach.is_full()), (5, 0, false));
        other.execute_batch("ROLLBACK").expect("it is given back");
        until(|| !reach.is_away()).await;
        assert_eq!(reach.waiting(), 0);
        binding.settle().await;
        assert!(store.call("four").await.expect("it is read").is_some());
        drop(binding);
    };
    let both = async { tokio::join!(calling, writing) };
    time::timeout(TEST_TIMEOUT, both).await.expect("an end");
}
