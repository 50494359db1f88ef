//! Tests that a tool disabled at one gateway is disabled at all.

use super::{Cluster, PROPAGATION_TIMEOUT, call, until};
use crate::kills::gateway::ask;
use serde_json::json;

#[tokio::test]
async fn disabled_tool_is_disabled_at_every_replica() {
    let cluster = Cluster::new().await;
    let (here, there) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    for enabled in [false, true] {
        let change = json!({ "enabled": enabled, "reason": "under review" }).to_string();
        ask(&here.address, "PATCH", "/api/v1/tools/puppet:echo", &change).await.expect("it is switched");
        until("the others know", PROPAGATION_TIMEOUT, async || {
            match call(&there.address, &json!({})).await {
                Ok(_) => enabled,
                Err(refusal) => {
                    !enabled && refusal.contains("HTTP/1.1 403") && refusal.contains("under review")
                }
            }
        })
        .await;
    }
}
