//! Measures whether large results delay small calls on other connections.

use crate::{
    drive::{Load, Measurement, RequestKind, drive},
    gateways::{GatewayKind, Programs, UpstreamServer, UpstreamTransport},
    table::{log, median},
};
use std::{sync::Arc, time::Duration};

/// Clients of small calls, and of large results beside them.
const SMALL_CLIENTS: usize = 1;
const LARGE_CLIENTS: usize = 16;

/// Size of a large result, in bytes.
const LARGE_BYTES: usize = 1 << 20;

/// Small calls of one gateway.
#[derive(Debug)]
pub(crate) struct MixedRow {
    pub(crate) kind: GatewayKind,
    /// Without other calls.
    pub(crate) alone: Measurement,
    /// While other clients receive large results.
    pub(crate) beside: Measurement,
}

/// Measures the gateways in turns.
pub(crate) async fn measure(
    programs: &Programs,
    rounds: usize,
    time: Duration,
) -> Result<Vec<MixedRow>, String> {
    let mut all_running = Vec::new();
    for kind in programs.gateways() {
        let running = programs.start(kind, UpstreamServer::small(UpstreamTransport::Http)).await?;
        all_running.push((kind, running, [Vec::new(), Vec::new()]));
    }
    let small = Load { what: RequestKind::Echo(100), clients: SMALL_CLIENTS, time };
    let large = Load { what: RequestKind::Payload(LARGE_BYTES), clients: LARGE_CLIENTS, time };
    for _ in 0..rounds {
        for (_, running, [alone, beside]) in &mut all_running {
            let target = Arc::new(running.target.clone());
            alone.push(drive(&target, &small).await?);
            let (small, large) = tokio::join!(drive(&target, &small), drive(&target, &large));
            large?;
            beside.push(small?);
        }
    }
    let mut rows = Vec::new();
    for (kind, running, measured) in all_running {
        running.stop().await;
        let [alone, beside] = measured.map(median);
        let row = MixedRow { kind, alone, beside };
        log(&format!("{row:?}"));
        rows.push(row);
    }
    Ok(rows)
}
