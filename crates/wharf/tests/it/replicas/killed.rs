//! Kills one of two gateways during many calls: the other continues, and every call with a response is in the journal
//! exactly once.

use super::{Cluster, STEP_TIMEOUT, call, journal};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{task::JoinSet, time::timeout};

const CALLS: usize = 5_000;

/// Number of concurrent callers, half of them at each gateway.
const CALLERS: usize = 8;

#[tokio::test]
async fn surviving_gateway_records_every_call_once() {
    let cluster = Cluster::new().await;
    let (here, there) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    let (next, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let mut addresses = vec![here.address.clone(), there.address.clone()];
        if caller.is_multiple_of(2) {
            addresses.reverse();
        }
        let (next, answered) = (next.clone(), answered.clone());
        callers.spawn(async move {
            let mut names = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= CALLS {
                    return names;
                }
                let answer = loop {
                    let address = addresses.last().expect("somebody is left");
                    match call(address, &json!({ "number": number })).await {
                        Ok(answer) => break answer,
                        // A caller does not use a gateway again that has failed.
                        Err(_) if addresses.len() > 1 => _ = addresses.pop(),
                        Err(error) => panic!("call {number} at the one that lives: {error}"),
                    }
                };
                assert_eq!(answer["success"], true, "{answer}");
                names.push(answer["request_id"].as_str().expect("a name").to_owned());
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while answered.load(Ordering::Relaxed) < CALLS / 3 {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    here.kill().await;
    let names: Vec<String> = timeout(3 * STEP_TIMEOUT, callers.join_all())
        .await
        .expect("everybody is answered")
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(names.len(), CALLS);
    let journal = journal(&there).await;
    let missing: Vec<_> = names.iter().filter(|it| journal.get(*it) != Some(&1)).collect();
    assert!(missing.is_empty(), "{} of {CALLS} are not there once: {missing:?}", missing.len());
    // A call in flight at the kill may be in the journal without a response, and the caller made it again.
    assert!(journal.len() <= CALLS + CALLERS, "{} calls", journal.len());
}
