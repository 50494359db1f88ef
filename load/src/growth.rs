//! Measures whether the cost of a call stays the same as the gateway grows: with more tools, more servers, more
//! sessions and a longer journal. A small and a large gateway are measured in turns.

use crate::{
    drive::{Client, Load, Measurement, RequestKind, drive},
    gateways::{GatewayKind, Programs, RunningGateway, UpstreamServer, UpstreamTransport},
    machine::Gateway,
    table::{log, median},
};
use std::{sync::Arc, time::Duration};
use tokio::time;

/// Sizes of the large gateways.
const MANY_TOOLS: usize = 10_000;
/// Number of servers that offer these tools, because one server may offer at most 5,000.
const SOURCES_OF_MANY_TOOLS: usize = 2;
/// Number of servers in the agent file, which may have at most 50, and with those registered.
const SOURCES_IN_FILE: usize = 50;
const MANY_SOURCES: usize = 200;
const MANY_SESSIONS: usize = 9_900;
const MANY_CALLS: usize = 200_000;

/// Number of tools of the small gateway.
const FEW_TOOLS: usize = 10;

/// Number of clients that make calls.
const CLIENTS: usize = 16;

/// The load that fills the journal, and how long it is applied at a time.
const FILLING_CLIENTS: usize = 64;
const FILLING_TIME: Duration = Duration::from_secs(2);

/// Idle time after many calls.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Idle time before memory is measured.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// All measurements of growth.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    pub(crate) rows: Vec<GrowthRow>,
    /// `tools/list` of the gateway with many tools.
    pub(crate) long_list: Measurement,
    /// Memory of an idle session, in KiB.
    pub(crate) session_kib: f64,
}

/// The cost of a call to a small and to a large gateway.
#[derive(Debug)]
pub(crate) struct GrowthRow {
    /// Name of the thing that grows, and its size before and after.
    pub(crate) what: (&'static str, usize, usize),
    pub(crate) small: Measurement,
    pub(crate) large: Measurement,
}

impl GrowthRow {
    /// The CPU time of a call to the large gateway, divided by that of a call to the small one.
    pub(crate) fn ratio(&self) -> f64 {
        self.large.cpu_per_call / self.small.cpu_per_call
    }
}

/// Measures what grows, one after the other.
pub(crate) async fn measure(programs: &Programs, rounds: usize, time: Duration) -> Result<Growth, String> {
    let (mut growth, rounds) = (Growth::default(), (rounds, time));
    let small = UpstreamServer { tools: FEW_TOOLS, ..UpstreamServer::small(UpstreamTransport::Http) };
    let start = |upstream| programs.start(GatewayKind::Wharf, upstream);

    let tools = MANY_TOOLS / SOURCES_OF_MANY_TOOLS;
    let many = UpstreamServer { tools, sources: SOURCES_OF_MANY_TOOLS, ..small };
    let pair = [start(small).await?, start(many).await?];
    growth.rows.push(compare(("tools", FEW_TOOLS, MANY_TOOLS), &pair, rounds).await?);
    let load = Load { what: RequestKind::List, clients: 1, time };
    growth.long_list = drive(&Arc::new(pair[1].target.clone()), &load).await?;
    stop(pair).await;

    let pair = [start(small).await?, start(UpstreamServer { sources: SOURCES_IN_FILE, ..small }).await?];
    pair[1].register_sources(MANY_SOURCES - SOURCES_IN_FILE).await?;
    growth.rows.push(compare(("servers", 1, MANY_SOURCES), &pair, rounds).await?);
    stop(pair).await;

    let pair = [start(small).await?, start(small).await?];
    let sessions = ("sessions", CLIENTS, CLIENTS + MANY_SESSIONS);
    // A first round, so that memory that every gateway with calls needs is not counted as that of sessions.
    compare(sessions, &pair, (1, time)).await?;
    growth.session_kib = open_sessions(&pair[1]).await?;
    growth.rows.push(compare(sessions, &pair, rounds).await?);
    stop(pair).await;

    let pair = [start(small).await?, start(small).await?];
    let calls = make_calls(&pair[1]).await?;
    // Until they are in the database. The disk gets them now and not during the measurement.
    time::sleep(DRAIN_TIME).await;
    rustix::fs::sync();
    growth.rows.push(compare(("calls in the journal", 0, calls), &pair, rounds).await?);
    stop(pair).await;
    Ok(growth)
}

/// Measures two gateways in turns.
async fn compare(
    what: (&'static str, usize, usize),
    pair: &[RunningGateway; 2],
    (rounds, time): (usize, Duration),
) -> Result<GrowthRow, String> {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (running, all) in pair.iter().zip(&mut all) {
            let load = Load { what: RequestKind::Echo(100), clients: CLIENTS, time };
            all.push(drive(&Arc::new(running.target.clone()), &load).await?);
        }
    }
    let [small, large] = all.map(median);
    let row = GrowthRow { what, small, large };
    log(&format!("{row:?}: {:.2}", row.ratio()));
    Ok(row)
}

/// Opens many sessions over one connection, and returns the memory of one in KiB.
async fn open_sessions(running: &RunningGateway) -> Result<f64, String> {
    let kib = || running.target.gateway.map_or(0, Gateway::kib) as f64;
    time::sleep(SETTLE_TIME).await;
    let before = kib();
    let mut client = Client::without_session(&running.target);
    for _ in 0..MANY_SESSIONS {
        client.initialize().await?;
    }
    time::sleep(SETTLE_TIME).await;
    Ok((kib() - before) / MANY_SESSIONS as f64)
}

/// Makes many calls, and returns how many.
async fn make_calls(running: &RunningGateway) -> Result<usize, String> {
    let load = Load { what: RequestKind::Echo(100), clients: FILLING_CLIENTS, time: FILLING_TIME };
    let mut calls = 0;
    while calls < MANY_CALLS {
        calls += drive(&Arc::new(running.target.clone()), &load).await?.calls;
    }
    Ok(calls)
}

async fn stop(pair: [RunningGateway; 2]) {
    for running in pair {
        running.stop().await;
    }
}
