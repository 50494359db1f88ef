//! Tests the circuit breaker of a source: when it opens, which failures count, and how it closes again.

use super::{
    first_calls::at_once,
    lists::CHANGED,
    puppet::Puppet,
    rig::{Rig, plan},
};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use tokio::time;
use wharf_runtime::{Breaker, Call, ConnectionState, FaultKind, Tuning};

const RECOVERY: Duration = Duration::from_secs(30);

/// Opens the breaker with five calls on which the server disconnects.
async fn exhausted() -> Rig {
    let rig = Rig::one("", Tuning::default());
    rig.handle.settled().await;
    for _ in 0..5 {
        assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    }
    rig
}

#[tokio::test(start_paused = true)]
async fn after_five_failures_a_source_rests_without_any_io() {
    let rig = exhausted().await;
    let before = (rig.puppet.opens(), rig.puppet.heard("tools/call").len());
    for _ in 0..100 {
        let record = rig.handle.call(Call::new("it__echo")).await;
        let fault = record.fault().expect("it rests").clone();
        assert_eq!((fault.kind, fault.retry_after), (FaultKind::Resting, Some(RECOVERY)));
    }
    assert_eq!((rig.puppet.opens(), rig.puppet.heard("tools/call").len()), before);
    assert_eq!(rig.state().connection, ConnectionState::Degraded);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn after_its_rest_one_call_of_ten_thousand_tries() {
    let rig = exhausted().await;
    let before = rig.puppet.heard("tools/call").len();
    time::sleep(RECOVERY).await;
    // The probe takes a second; all other calls are rejected immediately.
    let trying = {
        let handle = rig.handle.clone();
        async move { handle.call(Call::new("it__slow").arguments(json!({ "ms": 1_000, "nonce": "back" }))).await }
    };
    let others = async {
        rig.puppet.hears("tools/call", before + 1).await;
        at_once(&rig, "it__echo", 9_999).await
    };
    let (tried, others) = tokio::join!(trying, others);
    assert_eq!(super::rig::told(&tried), "ok back");
    assert_eq!(others, BTreeMap::from([("MCPConnectionError admit no".to_owned(), 9_999)]));
    assert_eq!(rig.puppet.heard("tools/call").len(), before + 1);
    assert_eq!(rig.state().gate.breaker, Breaker::Closed { failures: 0 });
    assert_eq!(at_once(&rig, "it__echo", 100).await, BTreeMap::from([("ok".to_owned(), 100)]));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_who_tries_and_leaves_gives_the_turn_back() {
    let rig = exhausted().await;
    time::sleep(RECOVERY).await;
    let leaving = time::timeout(Duration::from_secs(1), rig.handle.call(Call::new("it__silent"))).await;
    assert!(leaving.is_err(), "it is silent");
    assert_eq!(rig.call("it__echo", json!({ "nonce": "next" })).await, "ok next");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_says_no_is_no_failure_of_its_server() {
    let rig = Rig::one("", Tuning::default());
    for (tool, told) in [("it__refuse", "refused no"), ("it__error", "MCPProtocolError call yes")] {
        for _ in 0..20 {
            assert_eq!(rig.call(tool, json!({})).await, told);
        }
    }
    let gate = rig.state().gate;
    assert_eq!((gate.breaker, gate.failures), (Breaker::Closed { failures: 0 }, 0));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_is_replaced_once_it_has_rested() {
    let rig = Rig::one("request_timeout: 1", Tuning::default());
    for _ in 0..5 {
        assert_eq!(rig.call("it__silent", json!({})).await, "MCPTimeoutError call unknown");
    }
    assert_eq!(rig.puppet.opens(), 1);
    time::sleep(RECOVERY).await;
    assert_eq!(rig.call("it__echo", json!({ "nonce": "new" })).await, "ok new");
    assert_eq!(rig.puppet.opens(), 2);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_counts_once_however_many_requests_it_fails() {
    let rig = Rig::one("", Tuning::default());
    rig.handle.settled().await;
    let crash = async {
        rig.puppet.hears("tools/call", 20).await;
        rig.call("it__die", json!({})).await
    };
    let (waiting, crashed) = tokio::join!(at_once(&rig, "it__silent", 20), crash);
    assert_eq!(waiting, BTreeMap::from([("MCPConnectionError call unknown".to_owned(), 20)]));
    assert_eq!(crashed, "MCPConnectionError call unknown");
    assert_eq!((rig.state().gate.failures, rig.state().standing.failures), (1, 1));
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// Loses each of four sessions while its lists are being read again.
#[tokio::test(start_paused = true)]
async fn reading_the_lists_again_adds_nothing_to_a_failed_call() {
    let rig = Rig::one("", Tuning::default());
    rig.handle.settled().await;
    rig.puppet.hang_lists(true);
    let mut counted = Vec::new();
    for round in 0..4 {
        time::sleep(Duration::from_secs(1)).await;
        let (calls, lists) = (rig.puppet.heard("tools/call").len(), rig.puppet.heard("tools/list").len());
        let crash = async {
            rig.puppet.hears("tools/call", calls + 1).await;
            if round == 0 {
                // In later rounds the restarted server is listed without a notification.
                rig.puppet.say(CHANGED, json!({}));
            }
            rig.puppet.hears("tools/list", lists + 1).await;
            rig.call("it__die", json!({})).await
        };
        let crash = time::timeout(Duration::from_secs(3_600), crash);
        let (silent, crashed) = tokio::join!(rig.call("it__silent", json!({})), crash);
        let told = (silent, crashed.expect("the calls reach the server"));
        let lost = "MCPConnectionError call unknown".to_owned();
        assert_eq!(told, (lost.clone(), lost));
        counted.push((rig.state().gate.failures, rig.state().standing.failures));
    }
    assert_eq!(counted, [(1, 1), (2, 2), (3, 3), (4, 4)]);
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// The tool is already listed, so callers wait for the session itself.
#[tokio::test(start_paused = true)]
async fn starting_a_server_again_counts_once_however_many_callers_wait_for_it() {
    let rig = Rig::one("connect_timeout: 10", Tuning::default());
    rig.handle.settled().await;
    assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    rig.puppet.start_slowly(Duration::from_secs(3_600));
    let told = at_once(&rig, "it__echo", 100).await;
    assert_eq!(told, BTreeMap::from([("MCPTimeoutError handshake no".to_owned(), 100)]));
    assert_eq!((rig.puppet.opens(), rig.state().gate.failures, rig.state().standing.failures), (2, 2, 2));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_connect_attempt_counts_once_however_many_callers_wait_for_it() {
    for keys in ["", super::first_calls::LAZY] {
        let puppet = Puppet::default();
        puppet.refuse(true);
        let rig = Rig::start(&plan(&[("it", keys)]), puppet, Tuning::default());
        let mut counted = Vec::new();
        for _ in 0..4 {
            let told = at_once(&rig, "it__echo", 100).await;
            assert_eq!(told, BTreeMap::from([("MCPConnectionError open no".to_owned(), 100)]), "{keys}");
            counted.push((rig.puppet.opens(), rig.state().gate.failures));
        }
        assert_eq!(counted, [(1, 1), (2, 2), (3, 3), (4, 4)], "{keys}");
        rig.runtime.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_listing_that_nobody_waits_for_moves_no_breaker() {
    let puppet = Puppet::default();
    puppet.refuse(true);
    let rig = Rig::start(&plan(&[("it", "")]), puppet, Tuning::default());
    rig.handle.settled().await;
    assert_eq!((rig.puppet.opens(), rig.state().gate.failures), (1, 0));
    // The health of the source records the failure all the same.
    assert_eq!(rig.state().standing.failures, 1);
    for failures in 1..=5 {
        assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError open no");
        assert_eq!(rig.state().gate.failures, failures);
    }
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError admit no");
    rig.runtime.shutdown(Duration::ZERO).await;
}
