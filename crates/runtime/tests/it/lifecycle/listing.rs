//! Tests lists that change, shrink, fail, or change very often.

use super::{fake_server::TOOLS, rig::Rig};
use serde_json::json;
use std::time::Duration;
use tokio::time;
use wharf_runtime::{EventKind, RuntimeOptions, catalog::Discovery};

pub(super) const CHANGED: &str = "notifications/tools/list_changed";

pub(super) fn shown(rig: &Rig) -> String {
    let names: Vec<String> = rig.handle.tools().iter().map(|it| it.name.clone()).collect();
    names.join(" ")
}

/// Waits until the lists have been read once more.
pub(super) async fn listed(rig: &Rig, change: impl FnOnce()) {
    let mut events = rig.handle.events();
    change();
    while let Some(event) = events.next().await {
        if matches!(event.what, EventKind::Listed { .. }) {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tool_list_follows_list_changed_notifications() {
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    assert_eq!(rig.handle.tools().len(), TOOLS.len());
    listed(&rig, || {
        rig.fake_server.offer(&["echo", "brand_new"]);
        rig.fake_server.say(CHANGED, json!({}));
    })
    .await;
    assert_eq!(shown(&rig), "it__echo it__brand_new");
    assert_eq!(rig.call("it__brand_new", json!({ "nonce": "n" })).await, "ok n");
    assert_eq!(rig.call("it__slow", json!({})).await, "MCPToolNotFoundError resolve no");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn frequent_list_changes_are_read_at_a_limited_rate() {
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    // A thousand notifications per second for ten seconds.
    for _ in 0..10_000 {
        rig.fake_server.say(CHANGED, json!({}));
        time::sleep(Duration::from_millis(1)).await;
    }
    time::sleep(Duration::from_secs(5)).await;
    let reads = rig.fake_server.received("tools/list").len();
    assert!((10..=25).contains(&reads), "{reads}");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn failed_refresh_keeps_the_previous_tools() {
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    let before = shown(&rig);
    rig.fake_server.fail_lists(true);
    let catalog = rig.handle.refresh("it").await.expect("there is such a source");
    assert!(matches!(catalog.discovery("it"), Some(Discovery::Failed(_))));
    assert_eq!(shown(&rig), before);
    assert_eq!(rig.call("it__echo", json!({ "nonce": "n" })).await, "ok n");
    rig.fake_server.fail_lists(false);
    rig.fake_server.offer(&["echo"]);
    rig.handle.refresh("it").await.expect("there is such a source");
    assert_eq!(shown(&rig), "it__echo");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn restarted_server_is_listed_again() {
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    let again = listed(&rig, || {
        rig.fake_server.offer(&["echo", "after"]);
        rig.handle.restart("it").expect("there is such a source");
    });
    let ((), summary) = tokio::join!(again, rig.call("it__echo", json!({ "nonce": "n" })));
    assert_eq!(summary, "ok n");
    assert_eq!(rig.fake_server.opens(), 2);
    assert_eq!(shown(&rig), "it__echo it__after");
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// The lists are not read while the breaker is open, and are read once it has closed.
#[tokio::test(start_paused = true)]
async fn lists_are_read_after_the_breaker_closes() {
    let rig = Rig::one("request_timeout: 1", RuntimeOptions::default());
    for _ in 0..5 {
        rig.call("it__silent", json!({})).await;
    }
    rig.fake_server.offer(&["echo", "after"]);
    time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.fake_server.received("tools/list").len(), 1);
    let again = listed(&rig, || {});
    let ((), summary) = tokio::join!(again, rig.call("it__echo", json!({ "nonce": "n" })));
    assert_eq!(summary, "ok n");
    assert_eq!(shown(&rig), "it__echo it__after");
    rig.runtime.shutdown(Duration::ZERO).await;
}
