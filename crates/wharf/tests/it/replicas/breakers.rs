//! Tests shared circuit breakers: a breaker that opens at one gateway opens at all, one gateway makes the probe,
//! and if it is killed meanwhile, another makes the next probe.

use super::{Cluster, PROPAGATION_TIMEOUT, STEP_TIMEOUT, call, until};
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

async fn check_opens_everywhere(cluster: &Cluster, here: &str, there: &str) {
    cluster.puppet.set_broken(true);
    for _ in 0..3 {
        call(here, &json!({})).await.expect_err("it is broken");
    }
    assert_eq!(state(here).await, "OPEN");
    until("the breaker opens at the other gateway", PROPAGATION_TIMEOUT, async || {
        state(there).await == "OPEN"
    })
    .await;
    let before = cluster.puppet.calls();
    let refused = call(there, &json!({})).await.expect_err("the breaker is open");
    assert!(refused.contains("503") && refused.contains("circuit breaker"), "{refused}");
    assert_eq!(cluster.puppet.calls(), before, "no call was sent");
}

/// Starts two gateways and opens the circuit breaker of a source at both.
async fn with_open_breaker() -> (Cluster, Gateway, Gateway) {
    let cluster = Cluster::new().await;
    let (here, there) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    for gateway in [&here, &there] {
        call(&gateway.address, &json!({})).await.expect("it works");
    }
    check_opens_everywhere(&cluster, &here.address, &there.address).await;
    (cluster, here, there)
}

#[tokio::test]
async fn one_replica_makes_the_probe() {
    let (cluster, here, there) = with_open_breaker().await;

    cluster.puppet.set_broken(false);
    let before = cluster.puppet.calls();
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
    until("a gateway sends the probe", STEP_TIMEOUT, async || cluster.puppet.calls() > before).await;
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(cluster.puppet.calls(), before + 1, "one call is in flight as the probe");
    let all = tokio::time::timeout(STEP_TIMEOUT, callers.join_all()).await.expect("everybody gets through");
    assert!(all.iter().all(|it| it["success"] == true), "{all:?}");
    for gateway in [&here, &there] {
        assert_eq!(state(&gateway.address).await, "CLOSED");
    }
}

#[tokio::test]
async fn probe_of_a_killed_replica_is_taken_over() {
    let (cluster, here, there) = with_open_breaker().await;
    cluster.puppet.set_broken(false);
    let before = cluster.puppet.calls();
    let address = here.address.clone();
    let mut trying = JoinSet::new();
    trying.spawn(async move {
        // Calls until this call is the probe; then the gateway is killed.
        while call(&address, &json!({ "millis": 60_000 })).await.is_err_and(|it| it.contains("503")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    until("a gateway sends the probe", STEP_TIMEOUT, async || cluster.puppet.calls() > before).await;
    let refused = call(&there.address, &json!({})).await.expect_err("another gateway makes the probe");
    assert!(refused.contains("503"), "{refused}");
    here.kill().await;
    until("another gateway makes the probe", LEASE, async || call(&there.address, &json!({})).await.is_ok())
        .await;
    assert_eq!(state(&there.address).await, "CLOSED");
}
