//! Measures the agent: what it adds to the stream of a model, side by side with that stream and with another agent.
//!
//! All of them talk to the same scripted model, in turns, so that a busy moment of the machine affects all of them. Only
//! measurements of one run are compared.

mod agent_page;
mod chat_client;
mod hanging_server;
mod measured_agents;
mod scripted_agent;

use crate::{command_line::CommandLine, machine::Gateway, table::log};
use chat_client::Exchange;
use measured_agents::{MeasuredAgents, OtherAgent, WharfAgent};
use scripted_agent::{DELTAS, Task};
use scripted_model::ScriptedModel;
use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// Number of messages of one round.
const ROUND_MESSAGES: usize = 40;
/// Number of conversations at rest.
const CONVERSATIONS: usize = 1_000;
/// Number of times that wharf begins this many.
const BATCHES: usize = 3;
/// Number of messages before the memory of an agent is read for the first time.
const WARM_UP: usize = 200;
/// Number of starts, and of cancelled runs.
const REPEATS: usize = 9;
/// Idle time before memory is measured.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// Time to wait for something that another process does.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// All measurements.
pub(crate) struct AgentMeasurements {
    rounds: usize,
    /// Tasks, and the exchanges with the bare model, wharf and the other agent.
    tasks: Vec<(Task, [TaskTimes; 3])>,
    /// Memory of conversations at rest, in KiB: wharf and the other agent.
    resting: [f64; 2],
    /// Memory of runs that wait for a decision, in KiB.
    parked: f64,
    /// Times from the start of the program to its first request: wharf and the other agent.
    cold: [Vec<Duration>; 2],
    /// Times from the request to cancel to the notification of the server.
    cancels: Vec<Duration>,
}

/// Times of the messages of one task, and the CPU time of the agent for all of them.
#[derive(Default)]
struct TaskTimes {
    first: Vec<Duration>,
    whole: Vec<Duration>,
    cpu_micros: u64,
}

/// Programs to measure.
struct AgentPrograms {
    own: PathBuf,
    wharf: PathBuf,
    /// The Python that has the other agent.
    python: PathBuf,
}

impl AgentPrograms {
    #[expect(clippy::disallowed_methods, reason = "it starts itself as a server")]
    fn of(command_line: &CommandLine) -> Result<AgentPrograms, String> {
        let own = std::env::current_exe().map_err(|it| it.to_string())?;
        let path = |name: &str| {
            command_line.text(name).map(PathBuf::from).ok_or_else(|| format!("missing `--{name} PROGRAM`"))
        };
        Ok(AgentPrograms { own, wharf: path("wharf")?, python: path("python")? })
    }
}

/// Measures everything and writes the page. Blocks: the model and the clients have threads of their own.
#[expect(clippy::print_stdout, reason = "the page on stdout is the output")]
pub(crate) fn measure(command_line: &CommandLine) -> Result<(), String> {
    let programs = AgentPrograms::of(command_line)?;
    let rounds = command_line.number("rounds", 5);
    let model = ScriptedModel::with(|_, request| scripted_agent::reply(request));
    let mut agents = MeasuredAgents {
        wharf: WharfAgent::start(&programs, &model.url())?,
        other: OtherAgent::start(&programs, &model.url())?,
    };
    let tasks = measure_tasks(&mut agents, &model, rounds)?;
    let (resting, parked) = measure_memory(&mut agents)?;
    let cold = measure_cold_starts(&programs)?;
    let cancels = measure_cancels(&programs, &model)?;
    let measured = AgentMeasurements { rounds, tasks, resting, parked, cold, cancels };
    let text = agent_page::page(&measured);
    match command_line.text("page") {
        Some(file) => fs::write(file, &text).map_err(|it| format!("{file}: {it}")),
        None => {
            println!("{text}");
            Ok(())
        }
    }
}

fn measure_tasks(
    agents: &mut MeasuredAgents,
    model: &ScriptedModel,
    rounds: usize,
) -> Result<Vec<(Task, [TaskTimes; 3])>, String> {
    let mut measured = Vec::new();
    for task in Task::ALL {
        let mut times: [TaskTimes; 3] = Default::default();
        for round in 0..=rounds {
            // The first round is not counted: connections are opened, and caches filled.
            let messages = if task == Task::ManyDeltas { 1 } else { ROUND_MESSAGES };
            for _ in 0..messages {
                times[0].add(round, chat_client::ask_model(&model.url(), task)?);
            }
            let before = agents.wharf.gateway().micros();
            for _ in 0..messages {
                times[1].add(round, agents.wharf.ask(task, true)?);
            }
            times[1].add_cpu(round, agents.wharf.gateway().micros() - before);
            let before = agents.other.gateway().micros();
            for exchange in agents.other.ask(task, messages)? {
                times[2].add(round, exchange);
            }
            times[2].add_cpu(round, agents.other.gateway().micros() - before);
            log(&format!("{task:?}: round {round} of {rounds}"));
        }
        measured.push((task, times));
    }
    Ok(measured)
}

impl TaskTimes {
    fn add(&mut self, round: usize, exchange: Exchange) {
        if round > 0 {
            self.first.push(exchange.first);
            self.whole.push(exchange.whole);
        }
    }

    fn add_cpu(&mut self, round: usize, micros: u64) {
        if round > 0 {
            self.cpu_micros += micros;
        }
    }

    /// Returns the CPU time of one message, in microseconds.
    fn cpu_per_message(&self) -> f64 {
        self.cpu_micros as f64 / self.whole.len().max(1) as f64
    }

    /// Returns the CPU time of one delta of an answer with many, in microseconds.
    fn cpu_per_delta(&self) -> f64 {
        self.cpu_per_message() / DELTAS as f64
    }
}

/// Returns the memory of conversations at rest with wharf and with the other agent, and of runs that wait, in KiB.
fn measure_memory(agents: &mut MeasuredAgents) -> Result<([f64; 2], f64), String> {
    let MeasuredAgents { wharf, other } = agents;
    let ours = growth(wharf.gateway(), BATCHES, |count| {
        (0..count).try_for_each(|_| wharf.ask(Task::Answer, true).map(drop))
    })?;
    // Once, because it takes minutes.
    let others = growth(other.gateway(), 1, |count| other.converse(count))?;
    log("conversations at rest are measured");
    let parked = growth(wharf.gateway(), BATCHES, |count| (0..count).try_for_each(|_| wharf.park()))?;
    log("waiting runs are measured");
    Ok(([ours, others], parked))
}

/// Returns by how many KiB a process grows with 1,000 conversations: the median of several times, because an allocator
/// takes and returns memory in large pieces.
#[expect(clippy::disallowed_methods, reason = "the measurement has a thread of its own")]
fn growth(
    process: Gateway,
    batches: usize,
    mut begin: impl FnMut(usize) -> Result<(), String>,
) -> Result<f64, String> {
    begin(WARM_UP)?;
    let mut grown = Vec::new();
    for _ in 0..batches {
        thread::sleep(SETTLE_TIME);
        let before = process.kib() as f64;
        begin(CONVERSATIONS)?;
        thread::sleep(SETTLE_TIME);
        grown.push(process.kib() as f64 - before);
    }
    log(&format!("KiB with each thousand conversations: {grown:?}"));
    grown.sort_by(f64::total_cmp);
    Ok(grown[grown.len() / 2])
}

/// Measures the time from the start of a program to its first request.
fn measure_cold_starts(programs: &AgentPrograms) -> Result<[Vec<Duration>; 2], String> {
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..REPEATS {
        for (times, is_wharf) in times.iter_mut().zip([true, false]) {
            let model = ScriptedModel::with(|_, request| scripted_agent::reply(request));
            let started = Instant::now();
            let mut child = match is_wharf {
                true => measured_agents::run_wharf_once(programs, &model.url())?,
                false => OtherAgent::run_once(programs, &model.url())?,
            };
            model.wait_for_requests(1);
            times.push(started.elapsed());
            child.wait()?;
        }
    }
    log("cold starts are measured");
    Ok(times)
}

/// Measures the time from the request to cancel to the notification of the server.
fn measure_cancels(programs: &AgentPrograms, model: &ScriptedModel) -> Result<Vec<Duration>, String> {
    let server = hanging_server::HangingServer::start()?;
    let agent = WharfAgent::start_with_server(programs, &model.url(), &server.url())?;
    let mut times = Vec::new();
    for number in 1..=REPEATS {
        let run = agent.begin(Task::Hang)?;
        server.wait_for("tools/call", number, WAIT_TIMEOUT)?;
        let cancelled = Instant::now();
        agent.cancel(&run)?;
        server.wait_for("notifications/cancelled", number, WAIT_TIMEOUT)?;
        times.push(cancelled.elapsed());
    }
    log("cancelled runs are measured");
    Ok(times)
}
