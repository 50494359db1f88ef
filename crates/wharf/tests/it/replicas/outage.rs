//! Stops the database for ten seconds under load: no call fails or waits for it, `/ready` reports the outage, and
//! afterwards every call is in the journal once, including those that a gateway had spooled before it was killed.

use super::{Cluster, STEP_TIMEOUT, call, journal, until};
use crate::kills::gateway::{Gateway, ask};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::sleep};

const OUTAGE: Duration = Duration::from_secs(10);

/// Maximum duration of a call during the outage, on a busy machine.
const MAX_CALL_DURATION: Duration = Duration::from_secs(5);

const CALLERS: usize = 4;

/// Calls both gateways until `stop` is set, and returns the ids of the calls.
fn load(gateways: [&Gateway; 2], stop: &Arc<AtomicBool>) -> JoinSet<Vec<String>> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (address, stop) = (gateways[caller % 2].address.clone(), stop.clone());
        callers.spawn(async move {
            let mut names = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                let answer = call(&address, &json!({ "number": names.len() })).await;
                let answer = answer.unwrap_or_else(|error| panic!("a call failed: {error}"));
                assert_eq!(answer["success"], true, "{answer}");
                assert!(start.elapsed() < MAX_CALL_DURATION, "a call waited for {:?}", start.elapsed());
                names.push(answer["request_id"].as_str().expect("a name").to_owned());
                sleep(Duration::from_millis(2)).await;
            }
            names
        });
    }
    callers
}

async fn ready(gateway: &Gateway) -> Value {
    ask(&gateway.address, "GET", "/ready", "").await.expect("it takes new work")
}

/// Uses several threads, because stopping and starting the database takes a while and must not block the callers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_outage_loses_no_call() {
    let mut cluster = Cluster::new().await;
    let (here, there) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    for gateway in [&here, &there] {
        until("it is ready", STEP_TIMEOUT, async || ready(gateway).await == json!({ "status": "ready" }))
            .await;
        call(&gateway.address, &json!({})).await.expect("it works");
    }
    let stop = Arc::<AtomicBool>::default();
    let callers = load([&here, &there], &stop);
    sleep(Duration::from_millis(500)).await;
    cluster.postgres.stop();
    let stopped_at = Instant::now();
    until("it says what is missing", MAX_CALL_DURATION, async || {
        let said = ready(&here).await;
        said["status"] == "degraded"
            && said["missing"] == json!(["database"])
            && said["waiting"].as_u64() > Some(0)
    })
    .await;
    let refused = ask(&here.address, "GET", "/api/v1/calls", "").await.expect_err("there is no journal");
    assert!(refused.contains("503") && refused.contains("the database is unreachable"), "{refused}");
    sleep(OUTAGE.saturating_sub(stopped_at.elapsed())).await;
    cluster.postgres.start_again().expect("it starts again");
    for gateway in [&here, &there] {
        until("it is ready again", STEP_TIMEOUT, async || {
            ready(gateway).await == json!({ "status": "ready" })
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    let names: Vec<String> = callers.join_all().await.into_iter().flatten().collect();
    until("nothing waits", STEP_TIMEOUT, async || ready(&here).await == ready(&there).await).await;
    let kept = journal(&there).await;
    let missing: Vec<_> = names.iter().filter(|it| kept.get(*it) != Some(&1)).collect();
    assert!(missing.is_empty(), "{} of {} are not there once: {missing:?}", missing.len(), names.len());
    assert_eq!(kept.len(), names.len() + 2, "nothing is there that nobody asked for");
}

#[tokio::test]
async fn spool_of_a_killed_gateway_is_recovered() {
    let mut cluster = Cluster::new().await;
    let here = cluster.gateway(0).await;
    call(&here.address, &json!({})).await.expect("it works");
    cluster.postgres.stop();
    let mut names = Vec::new();
    for number in 0..50 {
        let answer = call(&here.address, &json!({ "number": number })).await.expect("it works");
        names.push(answer["request_id"].as_str().expect("a name").to_owned());
    }
    here.kill().await;
    cluster.postgres.start_again().expect("it starts again");
    let here = cluster.gateway(0).await;
    until("nothing waits", STEP_TIMEOUT, async || ready(&here).await == json!({ "status": "ready" })).await;
    let kept = journal(&here).await;
    assert!(names.iter().all(|it| kept.get(it) == Some(&1)), "{names:?} {kept:?}");
    assert_eq!(kept.len(), names.len() + 1);
}
