//! Tests that idle servers are stopped.

use super::rig::Rig;
use serde_json::json;
use std::time::Duration;
use tokio::time;
use wharf_runtime::{RuntimeOptions, SessionState};

const MINUTE: Duration = Duration::from_secs(60);

fn rig() -> Rig {
    Rig::one("request_timeout: 600", RuntimeOptions { idle_stop: Some(MINUTE), ..RuntimeOptions::default() })
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_stopped_and_the_next_call_starts_it() {
    let rig = rig();
    for starts in 1..=3 {
        assert_eq!(rig.call("it__echo", json!({ "nonce": "here" })).await, "ok here");
        assert_eq!(rig.fake_server.opens(), starts);
        time::sleep(MINUTE * 2).await;
        assert_eq!(rig.state().status.session, SessionState::Disconnected);
    }
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn regular_calls_keep_a_server_running() {
    let rig = rig();
    for _ in 0..10 {
        assert_eq!(rig.call("it__echo", json!({ "nonce": "here" })).await, "ok here");
        time::sleep(MINUTE * 3 / 4).await;
    }
    assert_eq!(rig.fake_server.opens(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn long_call_prevents_the_idle_stop_and_notifications_do_not() {
    let rig = rig();
    assert_eq!(rig.call("it__slow", json!({ "ms": 300_000, "nonce": "late" })).await, "ok late");
    assert_eq!(rig.fake_server.opens(), 1);
    for _ in 0..20 {
        time::sleep(MINUTE / 6).await;
        rig.fake_server.say("notifications/message", json!({ "level": "info", "data": "still here" }));
    }
    time::sleep(MINUTE).await;
    assert_eq!(rig.state().status.session, SessionState::Disconnected);
    rig.runtime.shutdown(Duration::ZERO).await;
}
