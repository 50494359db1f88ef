//! Tests the first calls to a source that is not connected yet.

use super::{
    puppet::Puppet,
    rig::{Rig, plan, told},
};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use tokio::task::JoinSet;
use wharf_mcp::Raw;
use wharf_runtime::{Call, SessionState, Tuning};

/// Keys of a source that is not listed before its first call.
pub(crate) const LAZY: &str = "load_tools: false, load_prompts: false";

/// Makes many concurrent calls of one tool and counts each outcome.
pub(crate) async fn at_once(rig: &Rig, tool: &str, count: usize) -> BTreeMap<String, usize> {
    let mut calls = JoinSet::new();
    for number in 0..count {
        let (handle, tool) = (rig.handle.clone(), tool.to_owned());
        calls.spawn(async move {
            let nonce = format!("n{number}");
            let arguments: Raw = json!({ "nonce": nonce }).into();
            let told = told(&handle.call(Call::new(tool).arguments(arguments)).await);
            if told == format!("ok {nonce}") { "ok".to_owned() } else { told }
        });
    }
    let mut tally = BTreeMap::new();
    for told in calls.join_all().await {
        *tally.entry(told).or_default() += 1;
    }
    tally
}

#[tokio::test(start_paused = true)]
async fn a_thousand_first_calls_are_one_connection_and_one_handshake() {
    for keys in ["", LAZY] {
        let rig = Rig::one(keys, Tuning::default());
        rig.puppet.start_slowly(Duration::from_millis(250));
        let tally = at_once(&rig, "it__echo", 1_000).await;
        assert_eq!(tally, BTreeMap::from([("ok".to_owned(), 1_000)]), "{keys}");
        assert_eq!(rig.puppet.opens(), 1, "{keys}");
        assert_eq!(rig.puppet.heard("initialize").len(), 1, "{keys}");
        assert_eq!(rig.puppet.heard("tools/list").len(), 1, "{keys}");
        assert_eq!(rig.puppet.heard("tools/call").len(), 1_000, "{keys}");
        rig.runtime.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_fails_all_who_wait_and_is_not_repeated_for_each() {
    let puppet = Puppet::default();
    puppet.refuse(true);
    let rig = Rig::start(&plan(&[("it", LAZY)]), puppet, Tuning::default());
    let tally = at_once(&rig, "it__echo", 1_000).await;
    assert_eq!(tally, BTreeMap::from([("MCPConnectionError open no".to_owned(), 1_000)]));
    assert_eq!(rig.puppet.opens(), 1);
    // The next call tries again and succeeds.
    rig.puppet.refuse(false);
    assert_eq!(rig.call("it__echo", json!({ "nonce": "back" })).await, "ok back");
    assert_eq!(rig.puppet.opens(), 2);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_lazy_source_starts_with_its_first_call() {
    let rig = Rig::one(LAZY, Tuning::default());
    rig.handle.settled().await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!((rig.puppet.opens(), rig.state().standing.session), (0, SessionState::Created));
    assert_eq!(rig.call("it__echo", json!({ "nonce": "first" })).await, "ok first");
    assert_eq!((rig.puppet.opens(), rig.state().standing.session), (1, SessionState::Connected));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_died_is_replaced_by_the_next_call() {
    let rig = Rig::one("", Tuning::default());
    for round in 1..=20 {
        let nonce = format!("round {round}");
        assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
        assert_eq!(rig.call("it__echo", json!({ "nonce": nonce })).await, format!("ok {nonce}"));
    }
    assert_eq!(rig.puppet.opens(), 21);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_transient_source_has_a_server_for_each_call() {
    let rig = Rig::one("lifecycle: transient", Tuning::default());
    rig.handle.settled().await;
    assert_eq!(rig.puppet.opens(), 1, "its tools are listed");
    let tally = at_once(&rig, "it__echo", 50).await;
    assert_eq!(tally, BTreeMap::from([("ok".to_owned(), 50)]));
    assert_eq!(rig.puppet.opens(), 51);
    assert_eq!(rig.puppet.heard("tools/list").len(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}
