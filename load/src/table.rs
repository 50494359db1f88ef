//! Measures all gateways in turns over several rounds, so that a busy moment of the machine affects all of them,
//! and takes the medians. Only measurements of one run are compared.

use crate::{
    command_line::CommandLine,
    drive::{Client, Load, Measurement, RequestKind, drive},
    gateways::{GatewayKind, Programs, RunningGateway, UpstreamServer, UpstreamTransport},
    growth::{self, Growth},
    machine::Gateway,
    mixed::{self, MixedRow},
    page,
};
use std::{fs, sync::Arc, time::Duration};
use tokio::time;

/// Loads: name, kind of request, number of clients.
pub(crate) const LOADS: [(&str, RequestKind, usize); 6] = [
    ("100 B, 1 client", RequestKind::Echo(100), 1),
    ("100 B, 16 clients", RequestKind::Echo(100), 16),
    ("100 B, 64 clients", RequestKind::Echo(100), 64),
    ("64 KiB, 16 clients", RequestKind::Payload(64 << 10), 16),
    ("1 MiB, 16 clients", RequestKind::Payload(1 << 20), 16),
    // The envelope belongs to the message, whose limit is 16 MiB.
    ("16 MiB, 4 clients", RequestKind::Payload((16 << 20) - (1 << 10)), 4),
];

/// Number of tools in the long list.
const LONG_LIST_TOOLS: usize = 500;

/// Number of open sessions for the memory measurement.
const OPEN_SESSIONS: usize = 100;

/// Number of measured starts.
const STARTS: usize = 5;

/// Idle time before memory is measured.
const SETTLE_TIME: Duration = Duration::from_millis(500);

/// All measurements.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    pub(crate) rounds: usize,
    pub(crate) calls: Vec<GatewayResult<Vec<Measurement>>>,
    pub(crate) lists: Vec<GatewayResult<(RequestKind, Measurement)>>,
    pub(crate) footprints: Vec<GatewayResult<Footprint>>,
    /// Small calls beside large results.
    pub(crate) mixed: Vec<MixedRow>,
    pub(crate) growth: Growth,
}

/// A measurement of one gateway.
#[derive(Debug)]
pub(crate) struct GatewayResult<T> {
    pub(crate) kind: GatewayKind,
    pub(crate) transport: UpstreamTransport,
    pub(crate) what: T,
}

/// Start time and idle memory of a gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    pub(crate) start: Duration,
    pub(crate) idle_mib: f64,
    pub(crate) sessions_mib: f64,
}

#[expect(clippy::print_stdout, reason = "the page on stdout is the output")]
pub(crate) async fn measure(command_line: &CommandLine) -> Result<(), String> {
    let programs = Programs::of(command_line)?;
    let (rounds, seconds) = rounds(command_line);
    let mut measurements = Measurements { rounds, ..Measurements::default() };
    measurements.calls = calls(&programs, rounds, seconds).await?;
    measurements.lists = lists(&programs, rounds, seconds).await?;
    measurements.footprints = footprints(&programs).await?;
    measurements.mixed = mixed::measure(&programs, rounds, seconds).await?;
    measurements.growth = growth::measure(&programs, rounds, seconds).await?;
    let text = page::page(&measurements);
    match command_line.text("page") {
        Some(file) => fs::write(file, &text).map_err(|it| format!("{file}: {it}")),
        None => {
            println!("{text}");
            Ok(())
        }
    }
}

/// Returns the number of rounds and the length of one measurement.
pub(crate) fn rounds(command_line: &CommandLine) -> (usize, Duration) {
    (command_line.number("rounds", 3), Duration::from_secs_f64(command_line.seconds(3.0)))
}

fn gateways(programs: &Programs, transports: &[UpstreamTransport]) -> Vec<(GatewayKind, UpstreamTransport)> {
    let kind = programs.gateways();
    transports.iter().flat_map(|transport| kind.iter().map(|kind| (*kind, *transport))).collect()
}

async fn calls(
    programs: &Programs,
    rounds: usize,
    time: Duration,
) -> Result<Vec<GatewayResult<Vec<Measurement>>>, String> {
    let mut all_running = vec![(
        GatewayKind::NoGateway,
        UpstreamTransport::Http,
        programs.start(GatewayKind::NoGateway, UpstreamServer::small(UpstreamTransport::Http)).await?,
    )];
    for (kind, transport) in gateways(programs, &[UpstreamTransport::Stdio, UpstreamTransport::Http]) {
        all_running.push((
            kind,
            transport,
            name_error(programs.start(kind, UpstreamServer::small(transport)).await, kind)?,
        ));
    }
    let mut found = Vec::new();
    let mut all = vec![vec![Vec::new(); LOADS.len()]; all_running.len()];
    for round in 1..=rounds {
        for (load, (name, what, clients)) in LOADS.into_iter().enumerate() {
            for (index, (kind, transport, running)) in all_running.iter().enumerate() {
                let measured = drive(&Arc::new(running.target.clone()), &Load { what, clients, time }).await;
                let measured = name_error(measured, *kind)?;
                log(&format!("round {round} of {rounds}, {name}, {kind:?} over {transport:?}: {measured:?}"));
                all[index][load].push(measured);
            }
        }
    }
    for ((kind, transport, running), loads) in all_running.into_iter().zip(all) {
        running.stop().await;
        found.push(GatewayResult { kind, transport, what: loads.into_iter().map(median).collect() });
    }
    Ok(found)
}

async fn lists(
    programs: &Programs,
    rounds: usize,
    time: Duration,
) -> Result<Vec<GatewayResult<(RequestKind, Measurement)>>, String> {
    let mut found = Vec::new();
    for (kind, transport) in gateways(programs, &[UpstreamTransport::Stdio]) {
        let upstream = UpstreamServer { tools: LONG_LIST_TOOLS, ..UpstreamServer::small(transport) };
        let running = name_error(programs.start(kind, upstream).await, kind)?;
        // Only wharf serves 2026-07-28. Both kinds of request are measured in turns.
        let kinds = [RequestKind::List, RequestKind::ModernList];
        let kinds = &kinds[..if kind.is_wharf() { 2 } else { 1 }];
        let mut all = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (what, all) in kinds.iter().zip(&mut all) {
                let load = Load { what: *what, clients: 1, time };
                all.push(name_error(drive(&Arc::new(running.target.clone()), &load).await, kind)?);
            }
        }
        running.stop().await;
        for (request, all) in kinds.iter().zip(all) {
            let what = (*request, median(all));
            log(&format!("list of {LONG_LIST_TOOLS} tools, {kind:?}: {what:?}"));
            found.push(GatewayResult { kind, transport, what });
        }
    }
    Ok(found)
}

async fn footprints(programs: &Programs) -> Result<Vec<GatewayResult<Footprint>>, String> {
    let mut found = Vec::new();
    for (kind, transport) in gateways(programs, &[UpstreamTransport::Stdio]) {
        let mut starts = Vec::new();
        for _ in 1..STARTS {
            let running = name_error(programs.start(kind, UpstreamServer::small(transport)).await, kind)?;
            starts.push(running.started);
            running.stop().await;
        }
        let running = name_error(programs.start(kind, UpstreamServer::small(transport)).await, kind)?;
        starts.push(running.started);
        starts.sort_unstable();
        let (idle_mib, sessions_mib) = name_error(memory(&running).await, kind)?;
        running.stop().await;
        let what = Footprint { start: starts[starts.len() / 2], idle_mib, sessions_mib };
        log(&format!("{kind:?}: {what:?}"));
        found.push(GatewayResult { kind, transport, what });
    }
    Ok(found)
}

async fn memory(running: &RunningGateway) -> Result<(f64, f64), String> {
    let mib = || running.target.gateway.map_or(0, Gateway::kib) as f64 / 1024.0;
    time::sleep(SETTLE_TIME).await;
    let idle = mib();
    let mut clients = Vec::new();
    for _ in 0..OPEN_SESSIONS {
        clients.push(Client::connect(&running.target).await?);
    }
    time::sleep(SETTLE_TIME).await;
    Ok((idle, mib()))
}

/// Returns the median of each value.
pub(crate) fn median(mut all: Vec<Measurement>) -> Measurement {
    let mut middle = |of: fn(&Measurement) -> f64| {
        all.sort_by(|a, b| of(a).total_cmp(&of(b)));
        all.get(all.len() / 2).map_or(0.0, of)
    };
    Measurement {
        calls_per_second: middle(|it| it.calls_per_second),
        median: middle(|it| it.median),
        p99: middle(|it| it.p99),
        cpu_per_call: middle(|it| it.cpu_per_call),
        mib: middle(|it| it.mib),
        calls: all.iter().map(|it| it.calls).sum(),
    }
}

fn name_error<T>(result: Result<T, String>, kind: GatewayKind) -> Result<T, String> {
    result.map_err(|why| format!("{kind:?}: {why}"))
}

#[expect(clippy::print_stderr, reason = "progress of a run that takes minutes")]
pub(crate) fn log(line: &str) {
    eprintln!("{line}");
}
