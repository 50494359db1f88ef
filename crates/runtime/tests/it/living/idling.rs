//! Tests that idle servers are stopped.

use super::rig::Rig;
use serde_json::json;
use std::time::Duration;
use tokio::time;
use wharf_runtime::{SessionState, Tuning};

const MINUTE: Duration = Duration::from_secs(60);

fn rig() -> Rig {
    Rig::one("request_timeout: 600", Tuning { idle_stop: Some(MINUTE), ..Tuning::default() })
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_stopped_and_the_next_call_starts_it() {
    let rig = rig();
    for starts in 1..=3 {
        assert_eq!(rig.call("it__echo", json!({ "nonce": "here" })).await, "ok here");
        assert_eq!(rig.puppet.opens(), starts);
        time::sleep(MINUTE * 2).await;
        assert_eq!(rig.state().standing.session, SessionState::Disconnected);
    }
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn calls_keep_a_server_however_seldom_they_come() {
    let rig = rig();
    for _ in 0..10 {
        assert_eq!(rig.call("it__echo", json!({ "nonce": "here" })).await, "ok here");
        time::sleep(MINUTE * 3 / 4).await;
    }
    assert_eq!(rig.puppet.opens(), 1);
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_long_call_is_no_idleness_and_chatter_is() {
    let rig = rig();
    assert_eq!(rig.call("it__slow", json!({ "ms": 300_000, "nonce": "late" })).await, "ok late");
    assert_eq!(rig.puppet.opens(), 1);
    for _ in 0..20 {
        time::sleep(MINUTE / 6).await;
        rig.puppet.say("notifications/message", json!({ "level": "info", "data": "still here" }));
    }
    time::sleep(MINUTE).await;
    assert_eq!(rig.state().standing.session, SessionState::Disconnected);
    rig.runtime.shutdown(Duration::ZERO).await;
}
