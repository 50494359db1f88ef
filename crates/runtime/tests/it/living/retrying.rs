//! Tests background retries of sources whose listing failed.

use super::{
    first_calls::LAZY,
    lists::{CHANGED, listed, shown},
    puppet::{Puppet, TOOLS},
    rig::{Rig, plan},
};
use serde_json::json;
use std::time::Duration;
use tokio::time::{self, Instant};
use wharf_runtime::{Breaker, SessionState, Tuning, catalog::Discovery};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn retrying() -> Tuning {
    Tuning { background_retries: true, ..Tuning::default() }
}

/// Starts one source, `it`, whose server is down.
async fn down(keys: &str, tuning: Tuning) -> Rig {
    let puppet = Puppet::default();
    puppet.refuse(true);
    let rig = Rig::start(&plan(&[("it", keys)]), puppet, tuning);
    rig.handle.settled().await;
    rig
}

fn has_failed(rig: &Rig) -> bool {
    matches!(rig.handle.catalog().discovery("it"), Some(Discovery::Failed(_)))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_at_the_start_appears_when_it_is_up() {
    for keys in ["", "lifecycle: transient"] {
        let rig = down(keys, retrying()).await;
        assert_eq!((rig.puppet.opens(), shown(&rig).as_str()), (1, ""), "{keys}");
        // Retries after 1, 2, 4, 8, 16 and 32 s, then every minute, each slightly earlier.
        time::sleep(MINUTE * 10).await;
        assert!((15..=19).contains(&rig.puppet.opens()), "{keys}: {}", rig.puppet.opens());
        let begun = Instant::now();
        listed(&rig, || rig.puppet.refuse(false)).await;
        assert!(begun.elapsed() <= MINUTE, "{keys}: {:?}", begun.elapsed());
        assert_eq!(rig.handle.tools().len(), TOOLS.len(), "{keys}");
        let opens = rig.puppet.opens();
        time::sleep(HOUR).await;
        assert_eq!(rig.puppet.opens(), opens, "{keys}");
        assert_eq!(rig.state().standing.failures, 0, "{keys}");
        rig.runtime.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_ends_soon_does_not_retry() {
    let rig = down("", Tuning::default()).await;
    time::sleep(HOUR).await;
    assert_eq!(rig.puppet.opens(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_starts_with_its_first_call_is_not_retried() {
    let rig = down(LAZY, retrying()).await;
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError open no");
    time::sleep(HOUR).await;
    assert_eq!(rig.puppet.opens(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn retries_wait_for_an_open_breaker_and_leave_it_as_it_is() {
    let rig = down("", retrying()).await;
    for _ in 0..5 {
        assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError open no");
    }
    let opened = rig.state().gate;
    assert!(matches!(opened.breaker, Breaker::Open { .. }));
    time::sleep(Duration::from_secs(29)).await;
    assert_eq!(rig.puppet.opens(), 6, "nobody tries while the breaker is open");
    time::sleep(MINUTE * 10).await;
    assert!(rig.puppet.opens() >= 15, "{}", rig.puppet.opens());
    let gate = rig.state().gate;
    assert_eq!((gate.breaker, gate.failures), (opened.breaker, opened.failures));
    // Background retries left the probe to the next call.
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError open no");
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPConnectionError admit no");
    rig.puppet.refuse(false);
    time::sleep(MINUTE * 2).await;
    assert_eq!(rig.handle.tools().len(), TOOLS.len());
    assert_eq!(rig.call("it__echo", json!({ "nonce": "back" })).await, "ok back");
    assert_eq!(rig.state().gate.breaker, Breaker::Closed { failures: 0 });
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn clients_do_not_wait_for_a_retry_and_callers_share_it() {
    let rig = down("", retrying()).await;
    rig.puppet.start_slowly(Duration::from_secs(20));
    rig.puppet.refuse(false);
    rig.puppet.hears("initialize", 1).await;
    assert!(rig.handle.catalog().is_settled() && has_failed(&rig));
    assert_eq!(rig.call("it__echo", json!({ "nonce": "joined" })).await, "ok joined");
    assert_eq!(rig.puppet.opens(), 2);
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// A retry that fails while a caller waits for it counts in the breaker, once.
#[tokio::test(start_paused = true)]
async fn a_retry_that_a_caller_waited_for_counts_once() {
    let rig = down("connect_timeout: 10", retrying()).await;
    rig.puppet.start_slowly(HOUR);
    rig.puppet.refuse(false);
    rig.puppet.hears("initialize", 1).await;
    assert_eq!(rig.call("it__echo", json!({})).await, "MCPTimeoutError handshake no");
    assert_eq!((rig.puppet.opens(), rig.state().gate.failures), (2, 1));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn lists_that_a_living_server_failed_to_give_are_read_again() {
    let rig = Rig::one("", retrying());
    rig.handle.settled().await;
    rig.puppet.fail_lists(true);
    rig.puppet.offer(&["echo", "brand_new"]);
    rig.puppet.say(CHANGED, json!({}));
    time::sleep(MINUTE).await;
    assert!(has_failed(&rig));
    listed(&rig, || rig.puppet.fail_lists(false)).await;
    assert_eq!(shown(&rig), "it__echo it__brand_new");
    assert_eq!((rig.puppet.opens(), rig.state().gate.failures), (1, 0));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_died_and_cannot_be_listed_again_is_retried() {
    let rig = Rig::one("", retrying());
    rig.handle.settled().await;
    assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    rig.puppet.fail_lists(true);
    rig.puppet.offer(&["echo", "after"]);
    assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    time::sleep(MINUTE).await;
    assert!(has_failed(&rig));
    listed(&rig, || rig.puppet.fail_lists(false)).await;
    assert_eq!(shown(&rig), "it__echo it__after");
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// Reading the lists again does not count as use, and does not start a stopped server.
#[tokio::test(start_paused = true)]
async fn retries_neither_keep_an_idle_server_nor_start_it() {
    let rig = Rig::one("", Tuning { idle_stop: Some(MINUTE * 5), ..retrying() });
    rig.handle.settled().await;
    rig.puppet.fail_lists(true);
    rig.puppet.say(CHANGED, json!({}));
    time::sleep(MINUTE * 4).await;
    assert!(has_failed(&rig) && rig.puppet.heard("tools/list").len() > 5);
    time::sleep(MINUTE * 30).await;
    assert_eq!((rig.puppet.opens(), rig.state().standing.session), (1, SessionState::Disconnected));
    // The next call starts the server, and then its lists are read.
    rig.puppet.fail_lists(false);
    rig.puppet.offer(&["echo", "after"]);
    let again = listed(&rig, || {});
    let ((), told) = tokio::join!(again, rig.call("it__echo", json!({ "nonce": "n" })));
    assert_eq!((told.as_str(), shown(&rig).as_str()), ("ok n", "it__echo it__after"));
    rig.runtime.shutdown(Duration::ZERO).await;
}
