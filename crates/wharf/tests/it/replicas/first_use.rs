//! Tests that replicas share the lock of registered servers: the first listing, and what was accepted since.

use super::{Cluster, STEP_TIMEOUT, until};
use crate::kills::gateway::ask;
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};

/// Maximum time until an accepted definition reaches the other gateways.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn accepted_definition_reaches_every_replica_within_a_second() {
    let cluster = Cluster::new().await;
    for home in &cluster.homes {
        let path = home.path().join("wharf.toml");
        let settings = fs::read_to_string(&path).expect("the settings");
        fs::write(path, format!("{settings}\n[lock]\nregistered = \"first-use\"\n")).expect("a file");
    }
    let (here, there) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    let source = json!({ "name": "second", "description": "d", "type": "mcp", "server": "x", "transport": "http",
        "url": cluster.puppet.url() });
    // `ask` reports every status but 200 as an error; the states below show whether it worked.
    let _ = ask(&here.address, "POST", "/api/v1/sources", &source.to_string()).await;
    let states = async |address: &str| -> Vec<Value> {
        let list = ask(address, "GET", "/api/v1/lock?source=second", "").await.expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    };
    let is_accepted = |items: &[Value]| !items.is_empty() && items.iter().all(|it| it["state"] == "accepted");
    for address in [&here.address, &there.address] {
        until("the first listing is accepted", STEP_TIMEOUT, async || is_accepted(&states(address).await))
            .await;
    }
    let id = states(&here.address).await[0]["tool_id"].as_str().expect("an id").to_owned();
    let hash = states(&here.address).await[0]["hash"].clone();
    ask(&here.address, "DELETE", &format!("/api/v1/lock/accepted/{id}"), "").await.expect("it is withdrawn");
    until("the tool is new there", STEP_TIMEOUT, async || {
        states(&there.address).await.iter().any(|it| it["tool_id"] == id.as_str() && it["state"] == "new")
    })
    .await;
    let accepted = json!({ "tool_id": id, "hash": hash }).to_string();
    let started = Instant::now();
    let _ = ask(&here.address, "POST", "/api/v1/lock/accepted", &accepted).await;
    until("it is accepted there", STEP_TIMEOUT, async || is_accepted(&states(&there.address).await)).await;
    let took = started.elapsed();
    println!("accepted at the other replica after {} ms", took.as_millis());
    assert!(took < ACCEPT_TIMEOUT, "{took:?}");
}
