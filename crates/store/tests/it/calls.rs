//! Tests recording calls in batches and paging through them newest first.

use crate::engines::on_both;
use wharf_store::{CallFilter, CallRow, Store};

fn call(number: i64) -> CallRow {
    CallRow {
        request_id: format!("req-{number:05}"),
        thread_id: (number % 10 == 0).then(|| "thread".to_owned()),
        source: if number % 2 == 0 { "even" } else { "odd" }.into(),
        tool_name: format!("tool_{}", number % 3),
        parameters: r#"{"a":"\u0000"}"#.into(),
        // Several calls start at the same time.
        execution_start: 1_700_000_000_000_000 + number / 4,
        execution_duration_ms: 0.25 + number as f64,
        status: if number % 7 == 0 { "failure" } else { "success" }.into(),
        result: (number % 7 != 0).then(|| "{}".to_owned()),
        error: (number % 7 == 0).then(|| "it 'failed'".to_owned()),
        error_type: (number % 7 == 0).then(|| "MCPError".to_owned()),
        via: Some("rest".into()),
        principal: (number % 2 == 0).then(|| "ci".to_owned()),
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
            let expected: Vec<String> =
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

/// Reads all pages.
async fn ids(store: &Store, filter: &CallFilter) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_calls(filter, after.as_ref(), 7).await.expect("a page");
        all.extend(page.calls.into_iter().map(|it| it.request_id));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}
