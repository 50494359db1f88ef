//! Tests the timeouts of the source and of the caller, their extension by progress, and the limit on result size.

use super::{
    first_calls::LAZY,
    rig::{Rig, plan, summary, upstream_context},
};
use serde_json::{Value, json};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::time::{self, Instant};
use wharf_runtime::{
    BreakerCoordinator, BreakerState, Call, FaultKind, Outcome, ProbeDecision, RuntimeOptions,
};

/// Each case has a request timeout of two seconds and a total timeout of seven, and gives the outcome and its time in
/// seconds.
#[tokio::test(start_paused = true)]
async fn progress_extends_the_timeout_up_to_the_total() {
    let rig = Rig::one("request_timeout: 2, max_total_timeout: 7", RuntimeOptions::default());
    rig.handle.settled().await;
    let steps: [(&str, Value, Option<u64>, &str, u64); 6] = [
        ("it__slow", json!({ "ms": 1_900, "nonce": "a" }), None, "ok a", 1),
        ("it__slow", json!({ "ms": 2_100, "nonce": "b" }), None, "MCPTimeoutError call unknown", 2),
        ("it__progress", json!({ "ms": 1_500, "times": 3, "nonce": "c" }), None, "ok c", 6),
        (
            "it__progress",
            json!({ "ms": 1_500, "times": 9, "nonce": "d" }),
            None,
            "MCPTimeoutError call unknown",
            7,
        ),
        ("it__slow", json!({ "ms": 9_000, "nonce": "e" }), Some(10), "ok e", 9),
        (
            "it__progress",
            json!({ "ms": 500, "times": 9, "nonce": "f" }),
            Some(3),
            "MCPTimeoutError call unknown",
            3,
        ),
    ];
    for (tool, arguments, within, expected, seconds) in steps {
        let begun = Instant::now();
        let mut call = Call::new(tool).arguments(arguments);
        call.timeout = within.map(Duration::from_secs);
        assert_eq!(summary(&rig.handle.call(call).await), expected);
        assert_eq!(begun.elapsed().as_secs(), seconds, "{expected}");
    }
    rig.runtime.shutdown(Duration::ZERO).await;
}

/// A caller's timeout includes the start of a server. The server continues to start, and its breaker counts no
/// failure.
#[tokio::test(start_paused = true)]
async fn caller_timeout_includes_the_start_of_the_server() {
    for keys in ["", LAZY] {
        let rig = Rig::one(keys, RuntimeOptions::default());
        rig.fake_server.start_slowly(Duration::from_secs(20));
        let begun = Instant::now();
        let call =
            Call::new("it__echo").arguments(json!({ "nonce": "early" })).within(Duration::from_secs(3));
        assert_eq!(summary(&rig.handle.call(call).await), "MCPTimeoutError admit no", "{keys}");
        assert_eq!(begun.elapsed(), Duration::from_secs(3), "{keys}");
        assert_eq!(rig.call("it__echo", json!({ "nonce": "late" })).await, "ok late", "{keys}");
        assert_eq!(rig.fake_server.opens(), 1, "{keys}");
        assert_eq!(rig.state().circuit_breaker.state, BreakerState::Closed { failures: 0 }, "{keys}");
        rig.runtime.shutdown(Duration::ZERO).await;
    }
}

/// A coordinator that takes three seconds to grant a probe.
struct SlowCoordinator;

impl BreakerCoordinator for SlowCoordinator {
    fn breaker_changed(&self, _source: &Arc<str>, _breaker: BreakerState) {}

    fn may_probe(&self, _source: &Arc<str>) -> Pin<Box<dyn Future<Output = ProbeDecision> + Send>> {
        Box::pin(async {
            time::sleep(Duration::from_secs(3)).await;
            ProbeDecision::Go
        })
    }
}

#[tokio::test(start_paused = true)]
async fn caller_timeout_includes_the_probe_decision() {
    let rig = Rig::one(
        "",
        RuntimeOptions { coordinator: Some(Arc::new(SlowCoordinator)), ..RuntimeOptions::default() },
    );
    rig.handle.settled().await;
    for _ in 0..5 {
        assert_eq!(rig.call("it__die", json!({})).await, "MCPConnectionError call unknown");
    }
    time::sleep(Duration::from_secs(30)).await;
    let begun = Instant::now();
    let call = Call::new("it__echo").within(Duration::from_secs(1));
    assert_eq!(summary(&rig.handle.call(call).await), "MCPTimeoutError admit no");
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    // The timed-out call returned its probe.
    assert_eq!(rig.call("it__echo", json!({ "nonce": "back" })).await, "ok back");
    assert_eq!(begun.elapsed(), Duration::from_secs(4));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn prompt_waits_up_to_60_s_for_starting_servers() {
    let rig = Rig::one("connect_timeout: 600", RuntimeOptions::default());
    rig.fake_server.start_slowly(Duration::from_secs(20));
    let begun = Instant::now();
    assert!(rig.handle.prompt("it__greet", None, None).await.is_ok());
    assert_eq!(begun.elapsed().as_secs(), 20);
    // The prompt's own server is connected, so a slow start of another does not delay it.
    rig.fake_server.start_slowly(Duration::from_secs(3_600));
    let both = plan(&[("it", "connect_timeout: 600"), ("slow", "connect_timeout: 600")]);
    rig.runtime.apply(&both, &upstream_context(&rig.fake_server));
    let begun = Instant::now();
    assert!(rig.handle.prompt("it__greet", None, None).await.is_ok());
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let fault = rig.handle.prompt("slow__greet", None, None).await.expect_err("it is not there yet");
    assert_eq!((fault.kind, begun.elapsed()), (FaultKind::Timeout, Duration::from_secs(60)));
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn long_result_is_truncated_for_the_caller_and_complete_in_the_record() {
    let rig = Rig::one("max_result_bytes: 1024", RuntimeOptions::default());
    let record = rig.handle.call(Call::new("it__big").arguments(json!({ "bytes": 100_000 }))).await;
    let Outcome::Answered(whole) = &record.outcome else { panic!("{record:?}") };
    assert!(whole.as_bytes().len() > 100_000);
    assert!(record.result().is_some_and(|it| it.as_bytes().len() <= 1_024));
    rig.runtime.shutdown(Duration::ZERO).await;
}
