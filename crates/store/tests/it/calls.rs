//! Tests recording calls in batches and paging through them newest first.

use crate::engines::on_both;
use std::sync::Arc;
use tempfile::TempDir;
use wharf_store::{CallFilter, CallRow, Location, Store};

fn call(number: i64) -> CallRow {
    CallRow {
        request_id: format!("req-{number:05}").into(),
        thread_id: (number % 10 == 0).then(|| "thread".into()),
        source: if number % 2 == 0 { "even" } else { "odd" }.into(),
        tool_name: format!("tool_{}", number % 3).into(),
        parameters: r#"{"a":"\u0000"}"#.into(),
        // Several calls start at the same time.
        execution_start: 1_700_000_000_000_000 + number / 4,
        execution_duration_ms: 0.25 + number as f64,
        status: if number % 7 == 0 { "failure" } else { "success" }.into(),
        result: (number % 7 != 0).then(|| "{}".into()),
        error: (number % 7 == 0).then(|| "it 'failed'".into()),
        error_type: (number % 7 == 0).then(|| "MCPError".into()),
        via: Some("rest".into()),
        principal: (number % 2 == 0).then(|| "ci".into()),
        details: (number % 7 == 0).then(|| r#"{"sent":"no"}"#.into()),
    }
}

#[tokio::test]
async fn batch_is_recorded_once() {
    on_both(async |store| {
        let calls: Vec<CallRow> = (0..1_000).map(call).collect();
        store.record_calls(calls.clone()).await.expect("they are kept");
        // Records the batch again, with one changed call and one new call.
        let mut again = calls.clone();
        again[3].status = "timeout".into();
        again.push(call(1_000));
        store.record_calls(again).await.expect("they are kept");
        store.record_calls(vec![]).await.expect("nothing is kept");
        assert_eq!(store.call("req-00003").await.expect("it is read"), Some(calls[3].clone()));
        assert_eq!(store.call("req-00007").await.expect("it is read"), Some(calls[7].clone()));
        assert_eq!(store.call("nope").await.expect("it is read"), None);
        assert_eq!(ids(store, &CallFilter::default()).await.len(), 1_001);
    })
    .await;
}

/// SQLite rolls back by itself after some errors. A trigger that does so stands in for a full disk.
#[tokio::test]
async fn sqlite_accepts_calls_after_a_transaction_that_it_rolled_back() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("wharf.db");
    let store = Store::open(&Location::Sqlite(path.clone())).await.expect("the database opens");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut other = sqlx::ConnectOptions::connect(&options).await.expect("a connection");
    let trigger = "CREATE TRIGGER full BEFORE INSERT ON calls WHEN NEW.request_id = 'req-00002' \
        BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END";
    sqlx::raw_sql(trigger).execute(&mut other).await.expect("it can be written");
    // Three calls are two statements, and so a transaction.
    store.record_calls((0..3).map(call).collect()).await.expect_err("the trigger refuses one");
    store.record_calls((3..6).map(call).collect()).await.expect("the others are kept");
    assert_eq!(ids(&store, &CallFilter::default()).await.len(), 3);
}

#[tokio::test]
async fn nul_character_is_replaced_on_both_engines() {
    on_both(async |store| {
        let odd = CallRow { error: Some("a\0b".into()), ..call(1) };
        store.record_calls(vec![odd, call(2)]).await.expect("they are kept");
        let kept = store.call("req-00001").await.expect("it is read").expect("there is one");
        assert_eq!(kept.error.as_deref(), Some("a\u{fffd}b"));
    })
    .await;
}

#[tokio::test]
async fn pages_cover_everything_once_newest_first() {
    on_both(async |store| {
        let calls: Vec<CallRow> = (0..100).map(call).collect();
        store.record_calls(calls).await.expect("they are kept");
        let text = |text: &str| Some(text.to_owned());
        let none = CallFilter::default;
        type Fits = fn(i64) -> bool;
        let cases: [(CallFilter, Fits); 7] = [
            (none(), |_| true),
            (CallFilter { source: text("odd"), ..none() }, |it| it % 2 == 1),
            (CallFilter { tool_name: text("tool_2"), ..none() }, |it| it % 3 == 2),
            (CallFilter { thread_id: text("thread"), ..none() }, |it| it % 10 == 0),
            (CallFilter { status: text("failure"), ..none() }, |it| it % 7 == 0),
            (CallFilter { status: text("success"), source: text("even"), ..none() }, |it| {
                it % 7 != 0 && it % 2 == 0
            }),
            (
                CallFilter {
                    since: Some(1_700_000_000_000_005),
                    until: Some(1_700_000_000_000_010),
                    ..none()
                },
                |it| (20..40).contains(&it),
            ),
        ];
        for (filter, fits) in cases {
            let expected: Vec<Arc<str>> =
                (0..100).rev().filter(|it| fits(*it)).map(|it| call(it).request_id).collect();
            assert_eq!(ids(store, &filter).await, expected, "{filter:?} on {}", store.engine());
        }
        let size = store.journal_size().await.expect("a size");
        assert!(size.calls == 100 && size.bytes > 10_000, "{size:?} on {}", store.engine());
        let before = Some(1_700_000_000_000_020);
        assert_eq!(store.delete_oldest_calls(before, 50).await.expect("they are deleted"), 50);
        let left = ids(store, &none()).await;
        assert_eq!((left.len(), left.last()), (50, Some(&call(50).request_id)), "the newest stay");
        assert_eq!(store.delete_oldest_calls(before, 50).await.expect("they are deleted"), 30);
        assert_eq!(store.delete_oldest_calls(None, 5).await.expect("they are deleted"), 5);
        assert_eq!(ids(store, &none()).await.len(), 15);
    })
    .await;
}

#[tokio::test]
async fn a_rare_call_is_found_over_several_pages_without_a_walk_through_all() {
    on_both(async |store| {
        let rare = CallRow { tool_name: "rare".into(), principal: Some("anna".into()), ..call(3) };
        let calls = (0..12_000).map(|it| if it == 3 { rare.clone() } else { call(it) }).collect();
        store.record_calls(calls).await.expect("they are kept");
        let text = |text: &str| Some(text.to_owned());
        let none = CallFilter::default;
        for filter in [
            CallFilter { tool_name: text("rare"), ..none() },
            CallFilter { principal: text("anna"), source: text("odd"), ..none() },
            CallFilter { tool_name: text("rare"), status: text("success"), ..none() },
        ] {
            let first = store.list_calls(&filter, None, 10).await.expect("a page");
            assert!(first.calls.is_empty() && first.next.is_some(), "{filter:?} on {}", store.engine());
            assert_eq!(ids(store, &filter).await, std::slice::from_ref(&rare.request_id), "{filter:?}");
        }
        let dense = CallFilter { tool_name: text("tool_1"), ..none() };
        let page = store.list_calls(&dense, None, 10).await.expect("a page");
        assert_eq!(page.calls.len(), 10, "a page is full if its calls are near");
        let all = read_all(store, &dense, 1_500).await;
        assert!(all.len() == 4_000 && all.is_sorted_by(|a, b| a > b), "each once, newest first");
    })
    .await;
}

async fn ids(store: &Store, filter: &CallFilter) -> Vec<Arc<str>> {
    read_all(store, filter, 7).await
}

/// Reads all pages.
async fn read_all(store: &Store, filter: &CallFilter, page_size: usize) -> Vec<Arc<str>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_calls(filter, after.as_ref(), page_size).await.expect("a page");
        all.extend(page.calls.into_iter().map(|it| it.request_id));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}
