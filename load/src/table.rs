//! Measures all gateways in turns over several rounds, so that a busy moment of the machine affects all of them,
//! and takes the medians. Only measurements of one run are compared.

use crate::{
    drive::{Client, Load, Measured, What, drive},
    machine::Gateway,
    page,
    scene::{Cast, Stage, Who, Wire},
    words::Words,
};
use std::{fs, sync::Arc, time::Duration};
use tokio::time;

/// Loads: name, kind of request, number of clients.
pub(crate) const LOADS: [(&str, What, usize); 5] = [
    ("100 B, 1 client", What::Echo(100), 1),
    ("100 B, 16 clients", What::Echo(100), 16),
    ("100 B, 64 clients", What::Echo(100), 64),
    ("64 KiB, 16 clients", What::Payload(64 << 10), 16),
    ("1 MiB, 16 clients", What::Payload(1 << 20), 16),
];

/// Number of tools in the long list.
const LONG: usize = 500;

/// Number of open sessions for the memory measurement.
const SESSIONS: usize = 100;

/// Number of measured starts.
const STARTS: usize = 5;

/// Idle time before memory is measured.
const REST: Duration = Duration::from_millis(500);

/// All measurements.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) rounds: usize,
    pub(crate) calls: Vec<Found<Vec<Measured>>>,
    pub(crate) lists: Vec<Found<Measured>>,
    pub(crate) footprints: Vec<Found<Footprint>>,
}

/// A measurement of one gateway.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) who: Who,
    pub(crate) wire: Wire,
    pub(crate) what: T,
}

/// Start time and idle memory of a gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    pub(crate) start: Duration,
    pub(crate) idle_mib: f64,
    pub(crate) sessions_mib: f64,
}

#[expect(clippy::print_stdout, reason = "the page is what this is for")]
pub(crate) async fn measure(words: &Words) -> Result<(), String> {
    let cast = Cast::of(words)?;
    let (rounds, seconds) = (words.number("rounds", 3), Duration::from_secs_f64(words.seconds(3.0)));
    let mut findings = Findings { rounds, ..Findings::default() };
    findings.calls = calls(&cast, rounds, seconds).await?;
    findings.lists = lists(&cast, rounds, seconds).await?;
    findings.footprints = footprints(&cast).await?;
    let text = page::page(&findings);
    match words.text("page") {
        Some(file) => fs::write(file, &text).map_err(|it| format!("{file}: {it}")),
        None => {
            println!("{text}");
            Ok(())
        }
    }
}

fn everybody(cast: &Cast, wires: &[Wire]) -> Vec<(Who, Wire)> {
    let who =
        [Who::Probe, Who::Wharf, Who::Rival].into_iter().filter(|it| cast.has_rival() || *it != Who::Rival);
    let who: Vec<Who> = who.collect();
    wires.iter().flat_map(|wire| who.iter().map(|who| (*who, *wire))).collect()
}

async fn calls(cast: &Cast, rounds: usize, time: Duration) -> Result<Vec<Found<Vec<Measured>>>, String> {
    let mut stages = vec![(Who::Nobody, Wire::Http, cast.stage(Who::Nobody, Wire::Http, 2).await?)];
    for (who, wire) in everybody(cast, &[Wire::Stdio, Wire::Http]) {
        stages.push((who, wire, named(cast.stage(who, wire, 2).await, who)?));
    }
    let mut found = Vec::new();
    let mut all = vec![vec![Vec::new(); LOADS.len()]; stages.len()];
    for round in 1..=rounds {
        for (load, (name, what, clients)) in LOADS.into_iter().enumerate() {
            for (place, (who, wire, stage)) in stages.iter().enumerate() {
                let measured = drive(&Arc::new(stage.target.clone()), &Load { what, clients, time }).await;
                let measured = named(measured, *who)?;
                say(&format!("round {round} of {rounds}, {name}, {who:?} over {wire:?}: {measured:?}"));
                all[place][load].push(measured);
            }
        }
    }
    for ((who, wire, stage), loads) in stages.into_iter().zip(all) {
        stage.end().await;
        found.push(Found { who, wire, what: loads.into_iter().map(median).collect() });
    }
    Ok(found)
}

async fn lists(cast: &Cast, rounds: usize, time: Duration) -> Result<Vec<Found<Measured>>, String> {
    let mut found = Vec::new();
    for (who, wire) in everybody(cast, &[Wire::Stdio]) {
        let stage = named(cast.stage(who, wire, LONG).await, who)?;
        let mut all = Vec::new();
        for _ in 0..rounds {
            let load = Load { what: What::List, clients: 1, time };
            all.push(named(drive(&Arc::new(stage.target.clone()), &load).await, who)?);
        }
        stage.end().await;
        let what = median(all);
        say(&format!("list of {LONG} tools, {who:?}: {what:?}"));
        found.push(Found { who, wire, what });
    }
    Ok(found)
}

async fn footprints(cast: &Cast) -> Result<Vec<Found<Footprint>>, String> {
    let mut found = Vec::new();
    for (who, wire) in everybody(cast, &[Wire::Stdio]) {
        let mut starts = Vec::new();
        for _ in 1..STARTS {
            let stage = named(cast.stage(who, wire, 2).await, who)?;
            starts.push(stage.started);
            stage.end().await;
        }
        let stage = named(cast.stage(who, wire, 2).await, who)?;
        starts.push(stage.started);
        starts.sort_unstable();
        let (idle_mib, sessions_mib) = named(memory(&stage).await, who)?;
        stage.end().await;
        let what = Footprint { start: starts[starts.len() / 2], idle_mib, sessions_mib };
        say(&format!("{who:?}: {what:?}"));
        found.push(Found { who, wire, what });
    }
    Ok(found)
}

async fn memory(stage: &Stage) -> Result<(f64, f64), String> {
    let mib = || stage.target.gateway.map_or(0, Gateway::kib) as f64 / 1024.0;
    time::sleep(REST).await;
    let idle = mib();
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(Client::begin(&stage.target).await?);
    }
    time::sleep(REST).await;
    Ok((idle, mib()))
}

/// Returns the median of each value.
fn median(mut all: Vec<Measured>) -> Measured {
    let mut middle = |of: fn(&Measured) -> f64| {
        all.sort_by(|a, b| of(a).total_cmp(&of(b)));
        all.get(all.len() / 2).map_or(0.0, of)
    };
    Measured {
        calls_per_second: middle(|it| it.calls_per_second),
        median: middle(|it| it.median),
        p99: middle(|it| it.p99),
        cpu_per_call: middle(|it| it.cpu_per_call),
        mib: middle(|it| it.mib),
        calls: all.iter().map(|it| it.calls).sum(),
    }
}

fn named<T>(result: Result<T, String>, who: Who) -> Result<T, String> {
    result.map_err(|why| format!("{who:?}: {why}"))
}

#[expect(clippy::print_stderr, reason = "it takes minutes, and somebody waits")]
fn say(line: &str) {
    eprintln!("{line}");
}
