//! Tests lists that change, shrink, fail, or change very often.

use super::{puppet::TOOLS, rig::Rig};
use serde_json::json;
use std::time::Duration;
use tokio::time;
use wharf_runtime::{Happening, Tuning, catalog::Discovery};

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
        if matches!(event.what, Happening::Listed { .. }) {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tools_come_and_go_as_the_server_says() {
    let rig = Rig::one("", Tuning::default());
    rig.handle.settled().await;
    assert_eq!(rig.handle.tools().len(), TOOLS.len());
    listed(&rig, || {
        rig.puppet.offer(&["echo", "brand_new"]);
        rig.puppet.say(CHANGED, json!({}));
    })
    .await;
    assert_eq!(shown(&rig), "it__echo it__brand_new");
    assert_eq!(rig.call("it__brand_new", json!({ "nonce": "n" })).await, "ok n");
    assert_eq!(rig.call("it__slow", json!({})).await, "MCPToolNotFoundError resolve no");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_changes_is_read_a_few_times() {
    let rig = Rig::one("", Tuning::default());
    rig.handle.settled().await;
    // A thousand notifications per second for ten seconds.
    for _ in 0..10_000 {
        rig.puppet.say(CHANGED, json!({}));
        time::sleep(Duration::from_millis(1)).await;
    }
    time::sleep(Duration::from_secs(5)).await;
    let reads = rig.puppet.heard("tools/list").len();
    assert!((10..=25).contains(&reads), "{reads}");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_again_stays_as_it_was() {
    let rig = Rig::one("", Tuning::default());
    rig.handle.settled().await;
    let before = shown(&rig);
    rig.puppet.fail_lists(true);
    let catalog = rig.handle.refresh("it").await.expect("there is such a source");
    assert!(matches!(catalog.discovery("it"), Some(Discovery::Failed(_))));
    assert_eq!(shown(&rig), before);
    assert_eq!(rig.call("it__echo", json!({ "nonce": "n" })).await, "ok n");
    rig.puppet.fail_lists(false);
    rig.puppet.offer(&["echo"]);
    rig.handle.refresh("it").await.expect("there is such a source");
    assert_eq!(shown(&rig), "it__echo");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_started_again_is_read_again() {
    let rig = Rig::one("", Tuning::default());
    rig.handle.settled().await;
    let again = listed(&rig, || {
        rig.puppet.offer(&["echo", "after"]);
        rig.handle.restart("it").expect("there is such a source");
    });
    let ((), told) = tokio::join!(again, rig.call("it__echo", json!({ "nonce": "n" })));
    assert_eq!(told, "ok n");
    assert_eq!(rig.puppet.opens(), 2);
    assert_eq!(shown(&rig), "it__echo it__after");
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// The lists are not read while the breaker is open, and are read once it has closed.
#[tokio::test(start_paused = true)]
async fn a_source_that_rested_is_read_when_it_is_back() {
    let rig = Rig::one("request_timeout: 1", Tuning::default());
    for _ in 0..5 {
        rig.call("it__silent", json!({})).await;
    }
    rig.puppet.offer(&["echo", "after"]);
    time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.puppet.heard("tools/list").len(), 1);
    let again = listed(&rig, || {});
    let ((), told) = tokio::join!(again, rig.call("it__echo", json!({ "nonce": "n" })));
    assert_eq!(told, "ok n");
    assert_eq!(shown(&rig), "it__echo it__after");
    rig.runtime.shutdown(Duration::ZERO).await;
}
