//! Tests that a tool disabled at one gateway is disabled at all.

use super::{Harbour, SOON, call, until};
use crate::kills::gateway::ask;
use serde_json::json;

#[tokio::test]
async fn a_tool_that_is_switched_off_is_off_everywhere() {
    let harbour = Harbour::new().await;
    let (here, there) = tokio::join!(harbour.gateway(0), harbour.gateway(1));
    for enabled in [false, true] {
        let change = json!({ "enabled": enabled, "reason": "under review" }).to_string();
        ask(&here.address, "PATCH", "/api/v1/tools/puppet:echo", &change).await.expect("it is switched");
        until("the others know", SOON, async || match call(&there.address, &json!({})).await {
            Ok(_) => enabled,
            Err(refusal) => !enabled && refusal.contains("HTTP/1.1 403") && refusal.contains("under review"),
        })
        .await;
    }
}
