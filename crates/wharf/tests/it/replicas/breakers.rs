//! Tests shared circuit breakers: a breaker that opens at one gateway opens at all, one gateway makes the probe,
//! and if it is killed meanwhile, another makes the next probe.

use super::{Harbour, PATIENCE, SOON, call, until};
use crate::kills::gateway::{Gateway, ask};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinSet;

/// Lease of a probe, plus tolerance for a busy machine.
const LEASE: Duration = Duration::from_secs(25);

async fn state(gateway: &str) -> Value {
    let breakers = ask(gateway, "GET", "/api/v1/breakers", "").await.expect("the breakers");
    breakers["items"][0]["state"].clone()
}

async fn opens_everywhere(harbour: &Harbour, here: &str, there: &str) {
    harbour.puppet.break_down(true);
    for _ in 0..3 {
        call(here, &json!({})).await.expect_err("it is broken");
    }
    assert_eq!(state(here).await, "OPEN");
    until("the others know that it rests", SOON, async || state(there).await == "OPEN").await;
    let before = harbour.puppet.calls();
    let refused = call(there, &json!({})).await.expect_err("it rests");
    assert!(refused.contains("503") && refused.contains("resting"), "{refused}");
    assert_eq!(harbour.puppet.calls(), before, "nobody was asked");
}

/// Starts two gateways and opens the circuit breaker of a source at both.
async fn resting() -> (Harbour, Gateway, Gateway) {
    let harbour = Harbour::new().await;
    let (here, there) = tokio::join!(harbour.gateway(0), harbour.gateway(1));
    for gateway in [&here, &there] {
        call(&gateway.address, &json!({})).await.expect("it works");
    }
    opens_everywhere(&harbour, &here.address, &there.address).await;
    (harbour, here, there)
}

#[tokio::test]
async fn one_of_all_tries_whether_a_source_is_back() {
    let (harbour, here, there) = resting().await;

    harbour.puppet.break_down(false);
    let before = harbour.puppet.calls();
    // Both gateways call continuously, from the open breaker into the slow probe.
    let mut callers = JoinSet::new();
    for address in [&here.address, &there.address].repeat(4) {
        let address = address.clone();
        callers.spawn(async move {
            loop {
                if let Ok(answer) = call(&address, &json!({ "millis": 1500 })).await {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    }
    until("somebody tries", PATIENCE, async || harbour.puppet.calls() > before).await;
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(harbour.puppet.calls(), before + 1, "one call is out to see whether the source is back");
    let all = tokio::time::timeout(PATIENCE, callers.join_all()).await.expect("everybody gets through");
    assert!(all.iter().all(|it| it["success"] == true), "{all:?}");
    for gateway in [&here, &there] {
        assert_eq!(state(&gateway.address).await, "CLOSED");
    }
}

#[tokio::test]
async fn one_that_is_killed_while_it_tries_is_not_waited_for() {
    let (harbour, here, there) = resting().await;
    harbour.puppet.break_down(false);
    let before = harbour.puppet.calls();
    let address = here.address.clone();
    let mut trying = JoinSet::new();
    trying.spawn(async move {
        // Calls until this call is the probe; then the gateway is killed.
        while call(&address, &json!({ "millis": 60_000 })).await.is_err_and(|it| it.contains("503")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    until("somebody tries", PATIENCE, async || harbour.puppet.calls() > before).await;
    let refused = call(&there.address, &json!({})).await.expect_err("somebody else is trying");
    assert!(refused.contains("503"), "{refused}");
    here.kill().await;
    until("another tries", LEASE, async || call(&there.address, &json!({})).await.is_ok()).await;
    assert_eq!(state(&there.address).await, "CLOSED");
}
