//! Tests the circuit breaker of a source: when it opens, which failures count, and how it closes again.

use super::{
    fake_server::FakeServer,
    first_calls::call_concurrently,
    listing::CHANGED,
    rig::{Rig, plan},
};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use tokio::time;
use wharf_runtime::{BreakerState, Call, ConnectionState, FaultKind, RuntimeOptions};

const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the breaker with five calls on which the server disconnects.
async fn with_open_breaker() -> Rig {
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    for _ in 0..5 {
        assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    }
    rig
}

#[tokio::test(start_paused = true)]
async fn five_failures_open_the_breaker_and_calls_fail_without_io() {
    let rig = with_open_breaker().await;
    let before = (rig.fake_server.opens(), rig.fake_server.received("tools/call").len());
    for _ in 0..100 {
        let record = rig.handle.call(Call::new("it__echo")).await;
        let fault = record.fault().expect("the breaker is open").clone();
        assert_eq!((fault.kind, fault.retry_after), (FaultKind::BreakerOpen, Some(RECOVERY_TIMEOUT)));
    }
    assert_eq!((rig.fake_server.opens(), rig.fake_server.received("tools/call").len()), before);
    assert_eq!(rig.state().connection, ConnectionState::Degraded);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn one_of_ten_thousand_calls_probes_after_recovery() {
    let rig = with_open_breaker().await;
    let before = rig.fake_server.received("tools/call").len();
    time::sleep(RECOVERY_TIMEOUT).await;
    // The probe takes a second; all other calls are rejected immediately.
    let trying = {
        let handle = rig.handle.clone();
        async move { handle.call(Call::new("it__slow").arguments(json!({ "ms": 1_000, "nonce": "back" }))).await }
    };
    let others = async {
        rig.fake_server.wait_for("tools/call", before + 1).await;
        call_concurrently(&rig, "it__echo", 9_999).await
    };
    let (tried, others) = tokio::join!(trying, others);
    assert_eq!(super::rig::summary(&tried), "ok back");
    assert_eq!(others, BTreeMap::from([("MCPConnectionError admit no".to_owned(), 9_999)]));
    assert_eq!(rig.fake_server.received("tools/call").len(), before + 1);
    assert_eq!(rig.state().circuit_breaker.state, BreakerState::Closed { failures: 0 });
    assert_eq!(call_concurrently(&rig, "it__echo", 100).await, BTreeMap::from([("ok".to_owned(), 100)]));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn abandoned_probe_is_returned() {
    let rig = with_open_breaker().await;
    time::sleep(RECOVERY_TIMEOUT).await;
    let leaving = time::timeout(Duration::from_secs(1), rig.handle.call(Call::new("it__silent"))).await;
    assert!(leaving.is_err(), "it is silent");
    assert_eq!(rig.call("it__echo", json!({ "nonce": "next" })).await, "ok next");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn error_results_do_not_open_the_breaker() {
    let rig = Rig::one("", RuntimeOptions::default());
    for (tool, summary) in [("it__refuse", "refused no"), ("it__error", "MCPProtocolError call yes")] {
        for _ in 0..20 {
            assert_eq!(rig.call(tool, json!({})).await, summary);
        }
    }
    let circuit_breaker = rig.state().circuit_breaker;
    assert_eq!((circuit_breaker.state, circuit_breaker.failures), (BreakerState::Closed { failures: 0 }, 0));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_replaced_after_recovery() {
    let rig = Rig::one("request_timeout: 1", RuntimeOptions::default());
    for _ in 0..5 {
        assert_eq!(rig.call("it__silent", json!({})).await, "MCPTimeoutError call unknown");
    }
    assert_eq!(rig.fake_server.opens(), 1);
    time::sleep(RECOVERY_TIMEOUT).await;
    assert_eq!(rig.call("it__echo", json!({ "nonce": "new" })).await, "ok new");
    assert_eq!(rig.fake_server.opens(), 2);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_counts_once_however_many_requests_it_fails() {
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    let crash = async {
        rig.fake_server.wait_for("tools/call", 20).await;
        rig.call("it__die", json!({})).await
    };
    let (waiting, crashed) = tokio::join!(call_concurrently(&rig, "it__silent", 20), crash);
    assert_eq!(waiting, BTreeMap::from([("MCPConnectionError call unknown".to_owned(), 20)]));
    assert_eq!(crashed, "MCPConnectionError call unknown");
    assert_eq!((rig.state().circuit_breaker.failures, rig.state().status.failures), (1, 1));
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// Loses each of four sessions while its lists are being read again.
#[tokio::test(start_paused = true)]
async fn relisting_does_not_count_in_addition_to_a_failed_call() {
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    rig.fake_server.hang_lists(true);
    let mut counted = Vec::new();
    for round in 0..4 {
        time::sleep(Duration::from_secs(1)).await;
        let (calls, lists) =
            (rig.fake_server.received("tools/call").len(), rig.fake_server.received("tools/list").len());
        let crash = async {
            rig.fake_server.wait_for("tools/call", calls + 1).await;
            if round == 0 {
                // In later rounds the restarted server is listed without a notification.
                rig.fake_server.say(CHANGED, json!({}));
            }
            rig.fake_server.wait_for("tools/list", lists + 1).await;
            rig.call("it__die", json!({})).await
        };
        let crash = time::timeout(Duration::from_secs(3_600), crash);
        let (silent, crashed) = tokio::join!(rig.call("it__silent", json!({})), crash);
        let summary = (silent, crashed.expect("the calls reach the server"));
        let lost = "MCPConnectionError call unknown".to_owned();
        assert_eq!(summary, (lost.clone(), lost));
        counted.push((rig.state().circuit_breaker.failures, rig.state().status.failures));
    }
    assert_eq!(counted, [(1, 1), (2, 2), (3, 3), (4, 4)]);
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// The tool is already listed, so callers wait for the session itself.
#[tokio::test(start_paused = true)]
async fn starting_a_server_again_counts_once_however_many_callers_wait_for_it() {
    let rig = Rig::one("connect_timeout: 10", RuntimeOptions::default());
    rig.handle.settled().await;
    assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    rig.fake_server.start_slowly(Duration::from_secs(3_600));
    let summary = call_concurrently(&rig, "it__echo", 100).await;
    assert_eq!(summary, BTreeMap::from([("MCPTimeoutError handshake no".to_owned(), 100)]));
    assert_eq!(
        (rig.fake_server.opens(), rig.state().circuit_breaker.failures, rig.state().status.failures),
        (2, 2, 2)
    );
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_connect_attempt_counts_once_however_many_callers_wait_for_it() {
    for keys in ["", super::first_calls::LAZY] {
        let fake_server = FakeServer::default();
        fake_server.refuse(true);
        let rig = Rig::start(&plan(&[("it", keys)]), fake_server, RuntimeOptions::default());
        let mut counted = Vec::new();
        for _ in 0..4 {
            let summary = call_concurrently(&rig, "it__echo", 100).await;
            assert_eq!(summary, BTreeMap::from([("MCPConnectionError open no".to_owned(), 100)]), "{keys}");
            counted.push((rig.fake_server.opens(), rig.state().circuit_breaker.failures));
        }
        assert_eq!(counted, [(1, 1), (2, 2), (3, 3), (4, 4)], "{keys}");
        rig.runtime.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn background_listing_failure_does_not_count_in_the_breaker() {
    let fake_server = FakeServer::default();
    fake_server.refuse(true);
    let rig = Rig::start(&plan(&[("it", "")]), fake_server, RuntimeOptions::default());
    rig.handle.settled().await;
    assert_eq!((rig.fake_server.opens(), rig.state().circuit_breaker.failures), (1, 0));
    // The health of the source records the failure all the same.
    assert_eq!(rig.state().status.failures, 1);
    for failures in 1..=5 {
        assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError open no");
        assert_eq!(rig.state().circuit_breaker.failures, failures);
    }
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError admit no");
    rig.runtime.shutdown(Duration::ZERO).await;
}
