//! Tests the first calls to a source that is not connected yet.

use super::{
    fake_server::FakeServer,
    rig::{Rig, plan, summary},
};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use tokio::task::JoinSet;
use wharf_mcp::Raw;
use wharf_runtime::{Call, RuntimeOptions, SessionState};

/// Keys of a source that is not listed before its first call.
pub(crate) const LAZY: &str = "load_tools: false, load_prompts: false";

/// Makes many concurrent calls of one tool and counts each outcome.
pub(crate) async fn call_concurrently(rig: &Rig, tool: &str, count: usize) -> BTreeMap<String, usize> {
    let mut calls = JoinSet::new();
    for number in 0..count {
        let (handle, tool) = (rig.handle.clone(), tool.to_owned());
        calls.spawn(async move {
            let nonce = format!("n{number}");
            let arguments: Raw = json!({ "nonce": nonce }).into();
            let summary = summary(&handle.call(Call::new(tool).arguments(arguments)).await);
            if summary == format!("ok {nonce}") { "ok".to_owned() } else { summary }
        });
    }
    let mut tally = BTreeMap::new();
    for summary in calls.join_all().await {
        *tally.entry(summary).or_default() += 1;
    }
    tally
}

#[tokio::test(start_paused = true)]
async fn a_thousand_first_calls_are_one_connection_and_one_handshake() {
    for keys in ["", LAZY] {
        let rig = Rig::one(keys, RuntimeOptions::default());
        rig.fake_server.start_slowly(Duration::from_millis(250));
        let tally = call_concurrently(&rig, "it__echo", 1_000).await;
        assert_eq!(tally, BTreeMap::from([("ok".to_owned(), 1_000)]), "{keys}");
        assert_eq!(rig.fake_server.opens(), 1, "{keys}");
        assert_eq!(rig.fake_server.received("initialize").len(), 1, "{keys}");
        assert_eq!(rig.fake_server.received("tools/list").len(), 1, "{keys}");
        assert_eq!(rig.fake_server.received("tools/call").len(), 1_000, "{keys}");
        rig.runtime.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn failed_start_fails_all_waiting_calls_without_a_retry_each() {
    let fake_server = FakeServer::default();
    fake_server.refuse(true);
    let rig = Rig::start(&plan(&[("it", LAZY)]), fake_server, RuntimeOptions::default());
    let tally = call_concurrently(&rig, "it__echo", 1_000).await;
    assert_eq!(tally, BTreeMap::from([("MCPConnectionError open no".to_owned(), 1_000)]));
    assert_eq!(rig.fake_server.opens(), 1);
    // The next call tries again and succeeds.
    rig.fake_server.refuse(false);
    assert_eq!(rig.call("it__echo", json!({ "nonce": "back" })).await, "ok back");
    assert_eq!(rig.fake_server.opens(), 2);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_lazy_source_starts_with_its_first_call() {
    let rig = Rig::one(LAZY, RuntimeOptions::default());
    rig.handle.settled().await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!((rig.fake_server.opens(), rig.state().status.session), (0, SessionState::Created));
    assert_eq!(rig.call("it__echo", json!({ "nonce": "first" })).await, "ok first");
    assert_eq!((rig.fake_server.opens(), rig.state().status.session), (1, SessionState::Connected));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn next_call_replaces_a_dead_session() {
    let rig = Rig::one("", RuntimeOptions::default());
    for round in 1..=20 {
        let nonce = format!("round {round}");
        assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
        assert_eq!(rig.call("it__echo", json!({ "nonce": nonce })).await, format!("ok {nonce}"));
    }
    assert_eq!(rig.fake_server.opens(), 21);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_transient_source_has_a_server_for_each_call() {
    let rig = Rig::one("lifecycle: transient", RuntimeOptions::default());
    rig.handle.settled().await;
    assert_eq!(rig.fake_server.opens(), 1, "its tools are listed");
    let tally = call_concurrently(&rig, "it__echo", 50).await;
    assert_eq!(tally, BTreeMap::from([("ok".to_owned(), 50)]));
    assert_eq!(rig.fake_server.opens(), 51);
    assert_eq!(rig.fake_server.received("tools/list").len(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}
