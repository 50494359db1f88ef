//! Development tasks of this repository, run as `cargo xtask TASK`.
//!
//! The arguments become a `Task`, the task runs its steps in order, and the exit code says whether all of them
//! passed. Nothing here ships. It needs a stable Rust toolchain, a C++ compiler (for libFuzzer), and npm, Python
//! and podman for the tests that run third-party programs.

#![expect(clippy::disallowed_methods, reason = "a program started by hand reads its own environment")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task reports to the terminal")]

mod checkout;
mod console;
mod failure;
mod fuzz;
mod generate;
mod instructions;
mod load;
mod provision;
mod rust_tests;
mod steps;
mod task;

use std::env;
use std::process::ExitCode;

use checkout::Checkout;
use failure::Failure;
use steps::Steps;
use task::Task;

fn main() -> ExitCode {
    let words: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let task = match Task::parse(&words) {
        Ok(task) => task,
        Err(failure) => {
            eprintln!("{failure}");
            return ExitCode::from(2);
        }
    };
    if let Task::Help(text) = task {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    let mut steps = Steps::new();
    let result = run(task, &mut steps);
    steps.summary();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

const BENCHMARKS: [&str; 9] = [
    "bench",
    "--locked",
    "--package",
    "wharf",
    "--package",
    "wharf-mcp",
    "--package",
    "hostile",
    "--benches",
];

fn run(task: Task, steps: &mut Steps) -> Result<(), Failure> {
    let checkout = Checkout::find()?;
    match task {
        Task::Help(_) => Ok(()),
        Task::Test => test(&checkout, steps),
        Task::Provision => provision::all(checkout.tools(), steps),
        Task::Console => {
            provision::all(checkout.tools(), steps)?;
            console::build(&checkout, steps)
        }
        Task::Browser => {
            provision::all(checkout.tools(), steps)?;
            console::browser(&checkout, steps)
        }
        Task::Generate => generate::all(&checkout, steps),
        Task::Fuzz { target, mode } => fuzz::run(&checkout, steps, target.as_deref(), &mode),
        Task::Load { before } => load::measure(&checkout, steps, before.as_deref()),
        Task::Instructions { reason: None } => instructions::check(&checkout, steps),
        Task::Instructions { reason: Some(reason) } => instructions::update(&checkout, steps, &reason),
        Task::Idle => idle(&checkout, steps),
        Task::Soak => steps.run("soak", || soak(&checkout)),
        Task::Kills { times } => kills(&checkout, steps, times),
        Task::Bench => {
            provision::all(checkout.tools(), steps)?;
            steps.run("benchmarks", || checkout.cargo(BENCHMARKS))?;
            load::measure_agent(&checkout, steps)?;
            load::measure(&checkout, steps, None)
        }
    }
}

/// Measures an idle gateway for two minutes, in a release build.
fn idle(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    const HOST: [&str; 7] = ["test", "--locked", "--release", "--package", "wharf", "--test", "host"];
    provision::all(checkout.tools(), steps)?;
    steps.run("idle", || checkout.cargo(HOST.iter().chain(&["--", "idle", "120"])))
}

/// Makes 100,000 calls over each transport, one transport after the other.
fn soak(checkout: &Checkout) -> Result<(), Failure> {
    const SOAK: [&str; 7] = ["test", "--locked", "--release", "--package", "hostile", "--test", "it"];
    let mut cargo = checkout.cargo_command();
    cargo.env("HOSTILE_SOAK", "100000").args(SOAK);
    checkout::run(cargo.args(["--", "soak::", "--nocapture", "--test-threads", "1"]))
}

/// Maximum number of kills of agents' runs on each database. Each one takes a start of the gateway and two runs.
const MAX_AGENT_KILLS: u64 = 200;

/// Kills the gateway under load, and in the middle of agents' runs.
fn kills(checkout: &Checkout, steps: &mut Steps, times: u64) -> Result<(), Failure> {
    const KILLS: [&str; 6] = ["test", "--locked", "--package", "wharf", "--test", "it"];
    provision::all(checkout.tools(), steps)?;
    steps.run("kills", || {
        let mut cargo = checkout.cargo_command();
        let agent_times = times.min(MAX_AGENT_KILLS).to_string();
        cargo.env("WHARF_KILLS", times.to_string()).env("WHARF_AGENT_KILLS", agent_times).args(KILLS);
        checkout::run(cargo.args(["--", "kills::", "--nocapture", "--test-threads", "1"]))
    })
}

/// Runs all tests. Calls cargo twice, because `--all-targets` excludes the doc tests.
fn test(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    steps.run("C++ compiler", fuzz::check_compiler)?;
    provision::all(checkout.tools(), steps)?;
    rust_tests::all(checkout, steps)?;
    steps.run("doc tests", || {
        checkout.cargo(["test", "--locked", "--workspace", "--all-features", "--doc"])
    })?;
    console::build(checkout, steps)?;
    console::browser(checkout, steps)?;
    instructions::check(checkout, steps)?;
    fuzz::run(checkout, steps, None, &fuzz::FuzzMode::Smoke)
}
