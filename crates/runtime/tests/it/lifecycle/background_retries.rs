//! Tests background retries of sources whose listing failed.

use super::{
    fake_server::{FakeServer, TOOLS},
    first_calls::LAZY,
    listing::{CHANGED, listed, shown},
    rig::{Rig, plan},
};
use serde_json::json;
use std::time::Duration;
use tokio::time::{self, Instant};
use wharf_runtime::{BreakerState, RuntimeOptions, SessionState, catalog::Discovery};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn with_background_retries() -> RuntimeOptions {
    RuntimeOptions { background_retries: true, ..RuntimeOptions::default() }
}

/// Starts one source, `it`, whose server is down.
async fn start_while_down(keys: &str, options: RuntimeOptions) -> Rig {
    let fake_server = FakeServer::default();
    fake_server.refuse(true);
    let rig = Rig::start(&plan(&[("it", keys)]), fake_server, options);
    rig.handle.settled().await;
    rig
}

fn has_failed(rig: &Rig) -> bool {
    matches!(rig.handle.catalog().discovery("it"), Some(Discovery::Failed(_)))
}

#[tokio::test(start_paused = true)]
async fn server_that_is_down_at_startup_is_listed_once_it_is_up() {
    for keys in ["", "lifecycle: transient"] {
        let rig = start_while_down(keys, with_background_retries()).await;
        assert_eq!((rig.fake_server.opens(), shown(&rig).as_str()), (1, ""), "{keys}");
        // Retries after 1, 2, 4, 8, 16 and 32 s, then every minute, each slightly earlier.
        time::sleep(MINUTE * 10).await;
        assert!((15..=19).contains(&rig.fake_server.opens()), "{keys}: {}", rig.fake_server.opens());
        let begun = Instant::now();
        listed(&rig, || rig.fake_server.refuse(false)).await;
        assert!(begun.elapsed() <= MINUTE, "{keys}: {:?}", begun.elapsed());
        assert_eq!(rig.handle.tools().len(), TOOLS.len(), "{keys}");
        let opens = rig.fake_server.opens();
        time::sleep(HOUR).await;
        assert_eq!(rig.fake_server.opens(), opens, "{keys}");
        assert_eq!(rig.state().status.failures, 0, "{keys}");
        rig.runtime.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn background_retries_are_off_by_default() {
    let rig = start_while_down("", RuntimeOptions::default()).await;
    time::sleep(HOUR).await;
    assert_eq!(rig.fake_server.opens(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_starts_with_its_first_call_is_not_retried() {
    let rig = start_while_down(LAZY, with_background_retries()).await;
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError open no");
    time::sleep(HOUR).await;
    assert_eq!(rig.fake_server.opens(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn retries_wait_for_an_open_breaker_and_leave_it_as_it_is() {
    let rig = start_while_down("", with_background_retries()).await;
    for _ in 0..5 {
        assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError open no");
    }
    let opened = rig.state().circuit_breaker;
    assert!(matches!(opened.state, BreakerState::Open { .. }));
    time::sleep(Duration::from_secs(29)).await;
    assert_eq!(rig.fake_server.opens(), 6, "nobody tries while the breaker is open");
    time::sleep(MINUTE * 10).await;
    assert!(rig.fake_server.opens() >= 15, "{}", rig.fake_server.opens());
    let circuit_breaker = rig.state().circuit_breaker;
    assert_eq!((circuit_breaker.state, circuit_breaker.failures), (opened.state, opened.failures));
    // Background retries left the probe to the next call.
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError open no");
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError admit no");
    rig.fake_server.refuse(false);
    time::sleep(MINUTE * 2).await;
    assert_eq!(rig.handle.tools().len(), TOOLS.len());
    assert_eq!(rig.call("it__echo", json!({ "nonce": "back" })).await, "ok back");
    assert_eq!(rig.state().circuit_breaker.state, BreakerState::Closed { failures: 0 });
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn clients_do_not_wait_for_a_retry_and_callers_share_it() {
    let rig = start_while_down("", with_background_retries()).await;
    rig.fake_server.start_slowly(Duration::from_secs(20));
    rig.fake_server.refuse(false);
    rig.fake_server.wait_for("initialize", 1).await;
    assert!(rig.handle.catalog().is_settled() && has_failed(&rig));
    assert_eq!(rig.call("it__echo", json!({ "nonce": "joined" })).await, "ok joined");
    assert_eq!(rig.fake_server.opens(), 2);
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// A retry that fails while a caller waits for it counts in the breaker, once.
#[tokio::test(start_paused = true)]
async fn a_retry_that_a_caller_waited_for_counts_once() {
    let rig = start_while_down("connect_timeout: 10", with_background_retries()).await;
    rig.fake_server.start_slowly(HOUR);
    rig.fake_server.refuse(false);
    rig.fake_server.wait_for("initialize", 1).await;
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPTimeoutError handshake no");
    assert_eq!((rig.fake_server.opens(), rig.state().circuit_breaker.failures), (2, 1));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn failed_lists_of_a_running_server_are_retried() {
    let rig = Rig::one("", with_background_retries());
    rig.handle.settled().await;
    rig.fake_server.fail_lists(true);
    rig.fake_server.offer(&["echo", "brand_new"]);
    rig.fake_server.say(CHANGED, json!({}));
    time::sleep(MINUTE).await;
    assert!(has_failed(&rig));
    listed(&rig, || rig.fake_server.fail_lists(false)).await;
    assert_eq!(shown(&rig), "it__echo it__brand_new");
    assert_eq!((rig.fake_server.opens(), rig.state().circuit_breaker.failures), (1, 0));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn failed_relisting_after_a_crash_is_retried() {
    let rig = Rig::one("", with_background_retries());
    rig.handle.settled().await;
    assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    rig.fake_server.fail_lists(true);
    rig.fake_server.offer(&["echo", "after"]);
    assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    time::sleep(MINUTE).await;
    assert!(has_failed(&rig));
    listed(&rig, || rig.fake_server.fail_lists(false)).await;
    assert_eq!(shown(&rig), "it__echo it__after");
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// Reading the lists again does not count as use, and does not start a stopped server.
#[tokio::test(start_paused = true)]
async fn retries_neither_keep_an_idle_server_nor_start_it() {
    let rig = Rig::one("", RuntimeOptions { idle_stop: Some(MINUTE * 5), ..with_background_retries() });
    rig.handle.settled().await;
    rig.fake_server.fail_lists(true);
    rig.fake_server.say(CHANGED, json!({}));
    time::sleep(MINUTE * 4).await;
    assert!(has_failed(&rig) && rig.fake_server.received("tools/list").len() > 5);
    time::sleep(MINUTE * 30).await;
    assert_eq!((rig.fake_server.opens(), rig.state().status.session), (1, SessionState::Disconnected));
    // The next call starts the server, and then its lists are read.
    rig.fake_server.fail_lists(false);
    rig.fake_server.offer(&["echo", "after"]);
    let again = listed(&rig, || {});
    let ((), summary) = tokio::join!(again, rig.call("it__echo", json!({ "nonce": "n" })));
    assert_eq!((summary.as_str(), shown(&rig).as_str()), ("ok n", "it__echo it__after"));
    rig.runtime.shutdown(Duration::ZERO).await;
}
