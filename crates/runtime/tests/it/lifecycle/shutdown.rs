//! Tests callers that disconnect, and the shutdown of the runtime.

use super::rig::{Rig, plan, summary, tasks};
use super::{fake_server::FakeServer, first_calls::LAZY};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::{task::JoinSet, time};
use wharf_mcp::Raw;
use wharf_runtime::{BreakerPolicy, Call, RuntimeOptions};

/// Returns options with a breaker that never opens, because these tests cause many failures.
fn without_breaker() -> RuntimeOptions {
    let breaker = BreakerPolicy { failure_threshold: u32::MAX, ..BreakerPolicy::default() };
    RuntimeOptions { breaker, ..RuntimeOptions::default() }
}

/// Uses the real clock, because the limit is 100 real milliseconds. The median counts: a busy machine may be late at times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_receives_the_cancellation_within_100_ms() {
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    let mut delays = Vec::new();
    for round in 1..=20 {
        let handle = rig.handle.clone();
        let mut calls = JoinSet::new();
        calls.spawn(async move { handle.call(Call::new("it__silent")).await });
        rig.fake_server.wait_for("tools/call", round).await;
        let left = time::Instant::now();
        calls.shutdown().await;
        rig.fake_server.wait_for("notifications/cancelled", round).await;
        let (received, cancelled) =
            rig.fake_server.received("notifications/cancelled").pop().expect("it was heard");
        delays.push(received - left);
        let (_, called) = rig.fake_server.received("tools/call").pop().expect("it was called");
        assert_eq!(cancelled["params"]["requestId"], called["id"]);
    }
    delays.sort();
    assert!(delays[10] < Duration::from_millis(100), "{delays:?}");
    assert_eq!(rig.state().unanswered, 0);
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// There are more calls than a slow listener's buffer holds, and nothing is read before all callers have
/// disconnected.
#[tokio::test(start_paused = true)]
async fn every_abandoned_call_is_reported() {
    let rig = Rig::one("", without_breaker());
    rig.handle.settled().await;
    let mut abandoned = rig.handle.abandoned_calls();
    let mut calls = JoinSet::new();
    for _ in 0..5_000 {
        let handle = rig.handle.clone();
        calls.spawn(async move { handle.call(Call::new("it__silent")).await });
    }
    rig.fake_server.wait_for("tools/call", 5_000).await;
    calls.shutdown().await;
    rig.runtime.shutdown(Duration::ZERO).await;
    let mut reported = BTreeSet::new();
    while let Some(record) = abandoned.next().await {
        assert!(record.is_abandoned());
        reported.insert(record.request_id.clone());
    }
    assert_eq!(reported.len(), 5_000);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_timeouts_leave_nothing_behind() {
    let rig = Rig::one("request_timeout: 1", without_breaker());
    rig.handle.settled().await;
    let mut calls = JoinSet::new();
    for _ in 0..10_000 {
        let handle = rig.handle.clone();
        calls.spawn(async move { summary(&handle.call(Call::new("it__silent")).await) });
    }
    rig.fake_server.wait_for("tools/call", 10_000).await;
    assert_eq!(rig.state().unanswered, 10_000);
    let all = calls.join_all().await;
    assert!(all.iter().all(|it| it == "MCPTimeoutError call unknown"));
    rig.fake_server.wait_for("notifications/cancelled", 10_000).await;
    assert_eq!((rig.state().unanswered, rig.handle.in_flight()), (0, 0));
    assert_eq!(rig.call("it__echo", json!({ "nonce": "well" })).await, "ok well");
    assert_eq!(rig.fake_server.opens(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// A request sent at the very moment the session ends is not lost. Uses the real clock, because this is a race.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_gets_an_outcome_when_the_server_disconnects() {
    let rig = Rig::one("request_timeout: 20", without_breaker());
    rig.handle.settled().await;
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let handle = rig.handle.clone();
        callers.spawn(async move {
            let mut all = BTreeSet::new();
            for round in 0..120 {
                let tool = if (round + caller) % 5 == 0 { "it__die" } else { "it__echo" };
                all.insert(summary(&handle.call(Call::new(tool)).await));
            }
            all
        });
    }
    let summary: BTreeSet<String> = callers.join_all().await.into_iter().flatten().collect();
    assert!(summary.iter().all(|it| it == "ok " || it.starts_with("MCPConnectionError call")), "{summary:?}");
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// Shuts the runtime down with a thousand calls in flight. Returns the count of each outcome and the duration.
async fn shut_down(tool: &str, ms: u64, grace: Duration) -> (BTreeMap<String, usize>, Duration) {
    let before = tasks();
    let rig = Rig::one("", RuntimeOptions::default());
    rig.handle.settled().await;
    let mut calls = JoinSet::new();
    for number in 0..1_000 {
        let (handle, tool) = (rig.handle.clone(), tool.to_owned());
        let arguments: Raw = json!({ "ms": ms, "nonce": format!("n{number}") }).into();
        calls.spawn(async move { summary(&handle.call(Call::new(tool).arguments(arguments)).await) });
    }
    rig.fake_server.wait_for("tools/call", 1_000).await;
    let begun = time::Instant::now();
    let handle = rig.handle.clone();
    rig.runtime.shutdown(grace).await;
    let took = begun.elapsed();
    let mut tally = BTreeMap::new();
    for summary in calls.join_all().await {
        let summary = if summary.starts_with("ok n") { "ok".to_owned() } else { summary };
        *tally.entry(summary).or_default() += 1;
    }
    assert_eq!(summary(&handle.call(Call::new("it__echo")).await), "MCPError admit no");
    drop((handle, rig.handle, rig.fake_server));
    while tasks() > before {
        time::sleep(Duration::from_millis(1)).await;
        assert!(begun.elapsed() < took + Duration::from_secs(1), "{} tasks are left", tasks() - before);
    }
    (tally, took)
}

#[tokio::test(start_paused = true)]
async fn calls_finish_within_the_grace_period() {
    let (tally, took) = shut_down("it__slow", 2_000, Duration::from_secs(5)).await;
    assert_eq!(tally, BTreeMap::from([("ok".to_owned(), 1_000)]));
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_are_aborted_after_the_grace_period() {
    let (tally, took) = shut_down("it__silent", 0, Duration::from_secs(5)).await;
    assert_eq!(tally, BTreeMap::from([("MCPError call unknown".to_owned(), 1_000)]));
    assert!((Duration::from_secs(5)..Duration::from_secs(6)).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn shutting_down_does_not_wait_for_a_server_that_is_starting() {
    let before = tasks();
    let fake_server = FakeServer::default();
    fake_server.start_slowly(Duration::from_secs(50));
    let rig = Rig::start(&plan(&[("one", ""), ("two", LAZY)]), fake_server, RuntimeOptions::default());
    let handle = rig.handle.clone();
    let mut calls = JoinSet::new();
    calls.spawn(async move { summary(&handle.call(Call::new("two__echo")).await) });
    time::sleep(Duration::from_secs(1)).await;
    let begun = time::Instant::now();
    rig.runtime.shutdown(Duration::from_secs(2)).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(calls.join_all().await, ["MCPError call unknown"]);
    drop((rig.handle, rig.fake_server));
    time::sleep(Duration::from_millis(1)).await;
    assert_eq!(tasks(), before);
}
