//! Tests that stored results are found by their owner only, numbered, limited and deleted.

use crate::engines::on_both;
use std::{fs, os::unix::fs::PermissionsExt, path::Path};
use tempfile::TempDir;
use wharf_store::{ConversationRow, Location, ResultLimits, ResultRow, Store};

const LIMITS: ResultLimits = ResultLimits { per_principal: 8 << 20, count: 100, total: 1 << 30 };

fn row(id: &str, principal: &str, conversation: Option<&str>, bytes: usize) -> ResultRow {
    ResultRow {
        id: id.to_owned(),
        principal: principal.to_owned(),
        conversation_id: conversation.map(str::to_owned),
        kind: "text".to_owned(),
        bytes: bytes as i64,
        expires_at: Some(i64::MAX),
        ..ResultRow::default()
    }
}

#[tokio::test]
async fn a_result_is_found_whole_by_its_principal_only() {
    on_both(async |store| {
        let content: Vec<u8> = (0..3_500_000_u32).map(|it| (it % 251) as u8).collect();
        let stored = store.put_result(&row("a", "ann", Some("c"), content.len()), &content, LIMITS).await;
        let stored = stored.expect("it is written").expect("it fits");
        assert_eq!(stored.number, Some(1));
        let find = async |principal: &str, id: &str, numbered: Option<(&str, i64)>| {
            store.find_result(principal, id, numbered).await.expect("it is asked").map(|(_, content)| content)
        };
        assert_eq!(find("ann", "a", None).await, Some(content.clone()));
        assert_eq!(find("ann", "r-1", Some(("c", 1))).await, Some(content));
        for (principal, id, numbered) in [
            ("bob", "a", None),
            ("bob", "r-1", Some(("c", 1))),
            ("ann", "b", None),
            ("ann", "r-1", Some(("d", 1))),
            ("ann", "r-2", Some(("c", 2))),
        ] {
            assert_eq!(find(principal, id, numbered).await, None, "{principal} {id}");
        }
        assert_eq!(store.results_of("ann").await.expect("it is asked"), [stored]);
        assert_eq!(store.results_of("bob").await.expect("it is asked"), []);
        assert!(!store.delete_result("bob", "a").await.expect("it is asked"));
        assert!(store.delete_result("ann", "a").await.expect("it is asked"));
        assert_eq!(find("ann", "a", None).await, None);
    })
    .await;
}

#[tokio::test]
async fn limits_delete_the_oldest_results() {
    on_both(async |store| {
        let limits = ResultLimits { per_principal: 10, count: 3, total: 15 };
        let put = async |id: &str, principal: &str, bytes: usize| {
            let stored = store.put_result(&row(id, principal, None, bytes), &vec![7; bytes], limits).await;
            stored.expect("it is written").map(|it| it.number)
        };
        let ids = async |principal: &str| -> Vec<String> {
            let rows = store.results_of(principal).await.expect("it is asked");
            rows.into_iter().rev().map(|it| it.id).collect()
        };
        for (id, bytes) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
            assert_eq!(put(id, "ann", bytes).await, Some(None));
        }
        assert_eq!(ids("ann").await, ["b", "c", "d"], "by count");
        assert_eq!(put("e", "ann", 5).await, Some(None));
        assert_eq!(ids("ann").await, ["d", "e"], "by size");
        assert_eq!(put("f", "bob", 8).await, Some(None));
        assert_eq!((ids("ann").await, ids("bob").await), (vec!["e".to_owned()], vec!["f".to_owned()]));
        assert_eq!(put("g", "eve", 11).await, None, "larger than the limit");
        assert_eq!(ids("eve").await, Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn expired_results_are_deleted() {
    on_both(async |store| {
        let expired = ResultRow { expires_at: Some(1), ..row("a", "ann", None, 1) };
        store.put_result(&expired, b"x", LIMITS).await.expect("it is written");
        store.put_result(&row("b", "ann", Some("c"), 1), b"y", LIMITS).await.expect("it is written");
        assert!(store.find_result("ann", "a", None).await.expect("it is asked").is_none());
        assert_eq!(store.delete_expired_results().await.expect("it is written"), 1);
        assert_eq!(store.delete_expired_results().await.expect("it is written"), 0);
        assert!(store.find_result("ann", "b", None).await.expect("it is asked").is_some());
    })
    .await;
}

/// Creates two conversations of ann with a result each, and one of bob's under the id of the first. Deletes the first.
async fn delete_one_conversation(store: &Store) {
    for id in ["c", "d"] {
        let (id, principal) = (id.to_owned(), "ann".to_owned());
        let created = ConversationRow { id, principal, ..ConversationRow::default() };
        store.create_conversation(&created).await.expect("it is created");
    }
    for (id, principal, conversation) in [("a", "ann", "c"), ("b", "ann", "d"), ("e", "bob", "c")] {
        let row = row(id, principal, Some(conversation), 3);
        store.put_result(&row, b"abc", LIMITS).await.expect("it is written").expect("it fits");
    }
    assert!(!store.delete_conversation("c", Some("bob")).await.expect("it is asked"));
    assert!(store.delete_conversation("c", Some("ann")).await.expect("it is written"));
}

#[tokio::test]
async fn deleted_conversation_leaves_no_results() {
    on_both(async |store| {
        delete_one_conversation(store).await;
        for (principal, id, is_kept) in [("ann", "a", false), ("ann", "b", true), ("bob", "e", true)] {
            let found = store.find_result(principal, id, None).await.expect("it is asked");
            assert_eq!(found.is_some(), is_kept, "{id}");
        }
    })
    .await;
}

#[tokio::test]
async fn deleted_conversation_leaves_no_files() {
    let folder = TempDir::new().expect("a folder");
    let location = Location::Sqlite(folder.path().join("wharf.db"));
    let store = Store::open(&location).await.expect("the database opens");
    delete_one_conversation(&store).await;
    let names: Vec<String> = result_files(folder.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["b", "e"]);
}

#[tokio::test]
async fn results_of_one_conversation_get_different_numbers_at_once() {
    on_both(async |store| {
        let put = |at: usize| {
            let store = store.clone();
            async move {
                let row = row(&format!("id-{at}"), "ann", Some("c"), 1);
                store.put_result(&row, b"x", LIMITS).await.expect("it is written").expect("it fits").number
            }
        };
        let (a, b, c) = tokio::join!(put(1), put(2), put(3));
        let mut numbers = [a, b, c].map(Option::unwrap_or_default);
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3]);
    })
    .await;
}

/// Returns the names of the files with results, and whether others can read one.
fn result_files(folder: &Path) -> Vec<(String, u32)> {
    let files = fs::read_dir(folder.join("results")).into_iter().flatten().flatten();
    let mode = |it: &fs::DirEntry| it.metadata().expect("a file").permissions().mode() & 0o777;
    let mut names: Vec<(String, u32)> =
        files.map(|it| (it.file_name().to_string_lossy().into_owned(), mode(&it))).collect();
    names.sort();
    names
}

#[tokio::test]
async fn results_beside_sqlite_are_private_files_that_end_with_their_rows() {
    let folder = TempDir::new().expect("a folder");
    let location = Location::Sqlite(folder.path().join("wharf.db"));
    let store = Store::open(&location).await.expect("the database opens");
    let limits = ResultLimits { count: 2, ..LIMITS };
    for id in ["r-1", "r-2", "r-3"] {
        store.put_result(&row(id, "ann", None, 3), b"abc", limits).await.expect("it is written");
    }
    let private = |names: &[&str]| names.iter().map(|it| ((*it).to_owned(), 0o600)).collect::<Vec<_>>();
    assert_eq!(result_files(folder.path()), private(&["r-2", "r-3"]), "the oldest is evicted");
    let mode = fs::metadata(folder.path().join("results")).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);

    // A file that is incomplete, as after a power cut, is no result.
    fs::write(folder.path().join("results/r-2"), "ab").expect("a file");
    assert!(store.find_result("ann", "r-2", None).await.expect("it is asked").is_none());
    assert!(store.delete_result("ann", "r-2").await.expect("it is written"));
    let expired = ResultRow { expires_at: Some(1), ..row("r-4", "ann", None, 3) };
    store.put_result(&expired, b"abc", limits).await.expect("it is written");
    store.close().await;
    let store = Store::open(&location).await.expect("the database opens");
    let found = store.find_result("ann", "r-3", None).await.expect("it is asked").expect("a result");
    assert_eq!(found.1, b"abc", "a result survives a restart");
    store.delete_expired_results().await.expect("it is written");
    assert_eq!(result_files(folder.path()), private(&["r-3"]));

    // If the file cannot be written, there is no row either.
    fs::remove_dir_all(folder.path().join("results")).expect("a folder");
    fs::write(folder.path().join("results"), "").expect("a file");
    store.put_result(&row("r-5", "ann", None, 3), b"abc", limits).await.expect_err("no folder");
    let rows = store.results_of("ann").await.expect("it is asked");
    assert_eq!(rows.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["r-3"]);
}
