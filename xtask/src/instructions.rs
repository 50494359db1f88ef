//! Counts the instructions that `wharf serve` executes for one call, and compares the count with the committed figure.
//!
//! A count does not depend on how busy or how fast the machine is. Only instructions of our own program count, and
//! only those of the thread that serves calls: the C library chooses its functions by the processor, and the thread of
//! SQLite works in batches that depend on the clock. Runs with few and with many calls are subtracted from each other,
//! so that start and shutdown do not count.

mod callgrind;
mod echo_server;
mod gateway;
mod http_message;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checkout::{self, Checkout};
use crate::failure::Failure;
use crate::provision;
use crate::steps::Steps;
use echo_server::EchoServer;
use gateway::GatewaySetup;

/// The file of figures: one line for each, with its reason. The last line applies.
const FIGURES: &str = "xtask/instructions.txt";

/// Allowed deviation from the figure, in percent.
const TOLERANCE_PERCENT: f64 = 3.0;

/// Allowed deviation of a call with a lock from one without, in percent.
const LOCK_TOLERANCE_PERCENT: f64 = 1.0;

/// Numbers of calls of the two runs that are subtracted.
const CALLS: [u64; 2] = [100, 1_100];

/// Number of measurements. The smallest counts, because a disturbance only adds instructions.
const MEASUREMENTS: usize = 2;

const BUILD: [&str; 5] = ["build", "--locked", "--release", "--package", "wharf"];

/// Compares the program of this checkout with the committed figure.
pub(crate) fn check(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    let Some(counted) = measure(checkout, steps)? else { return Ok(()) };
    check_lock(checkout, steps, counted)?;
    let (figure, compiler) = committed(checkout)?;
    let percent = (counted as f64 / figure as f64 - 1.0) * 100.0;
    eprintln!("{counted} instructions for a call; the committed figure is {figure} ({percent:+.1} %)");
    if percent.abs() <= TOLERANCE_PERCENT {
        return Ok(());
    }
    let change = if percent > 0.0 { "more" } else { "fewer" };
    let now = compiler_version()?;
    let by = if now == compiler { String::new() } else { format!(" ({compiler} then, {now} now)") };
    let percent = percent.abs();
    Err(Failure::new(format!(
        "a call executes {percent:.1} % {change} instructions than committed: {counted} instead of {figure}{by}"
    ))
    .hint("find the cause; if it is worth it, run `cargo xtask instructions --update \"REASON\"` and commit the file"))
}

/// Checks that an enforced lock costs a call nothing: it is compared when tools are listed.
fn check_lock(checkout: &Checkout, steps: &mut Steps, plain: u64) -> Result<(), Failure> {
    let program = program(checkout)?;
    let locked = steps.run("instructions of a call with a lock", || {
        let upstream = EchoServer::start().map_err(|error| unusable(&error))?;
        smallest(checkout, &program, &upstream, GatewaySetup::Locked)
    })?;
    let percent = (locked as f64 / plain as f64 - 1.0) * 100.0;
    eprintln!("{locked} instructions for a call with `lock: enforce` ({percent:+.1} %)");
    if percent <= LOCK_TOLERANCE_PERCENT {
        return Ok(());
    }
    Err(Failure::new(format!(
        "a lock makes a call {percent:.1} % more expensive: {locked} instead of {plain} instructions"
    ))
    .hint("compare with the lock when tools are listed, not when they are called"))
}

/// Counts the program of this checkout and appends the count to the file of figures.
pub(crate) fn update(checkout: &Checkout, steps: &mut Steps, reason: &str) -> Result<(), Failure> {
    let Some(counted) = measure(checkout, steps)? else { return Ok(()) };
    let file = checkout.path(FIGURES);
    let before = fs::read_to_string(&file).map_err(|error| unusable(&error))?;
    let line = format!("{counted} {}: {reason}\n", compiler_version()?);
    eprintln!("{line}");
    fs::write(&file, before + &line).map_err(|error| unusable(&error))
}

/// Counts the instructions of one call. Returns `None` on systems without Callgrind.
fn measure(checkout: &Checkout, steps: &mut Steps) -> Result<Option<u64>, Failure> {
    if !cfg!(target_os = "linux") {
        eprintln!("instructions are counted on Linux only");
        return Ok(None);
    }
    provision::valgrind(steps)?;
    steps.run("program", || checkout::run(checkout.cargo_command().args(BUILD)))?;
    let program = program(checkout)?;
    steps.run("instructions of a call", || {
        let upstream = EchoServer::start().map_err(|error| unusable(&error))?;
        smallest(checkout, &program, &upstream, GatewaySetup::Plain).map(Some)
    })
}

fn program(checkout: &Checkout) -> Result<PathBuf, Failure> {
    checkout.target().join("release/wharf").canonicalize().map_err(|error| unusable(&error))
}

/// Returns the smallest of several counts.
fn smallest(
    checkout: &Checkout,
    program: &Path,
    upstream: &EchoServer,
    setup: GatewaySetup,
) -> Result<u64, Failure> {
    let counts = (0..MEASUREMENTS).map(|_| per_call(checkout, program, upstream, setup));
    let counts: Vec<u64> = counts.collect::<Result<_, _>>()?;
    eprintln!("counted {counts:?}");
    Ok(counts.into_iter().min().unwrap_or_default())
}

fn per_call(
    checkout: &Checkout,
    program: &Path,
    upstream: &EchoServer,
    setup: GatewaySetup,
) -> Result<u64, Failure> {
    let folder = checkout.target().join("instructions");
    let mut counts = [0; 2];
    for (calls, count) in CALLS.into_iter().zip(&mut counts) {
        make_empty(&folder).map_err(|error| unusable(&error))?;
        let profile = gateway::profile_calls(program, &folder, upstream.port(), calls, setup)?;
        *count = callgrind::instructions_of(&profile, program);
    }
    let [few, many] = counts;
    let per_call = many.saturating_sub(few) / (CALLS[1] - CALLS[0]);
    if per_call == 0 {
        return Err(
            Failure::new("the profile has no instructions of the program").hint(unreadable_hint(&folder))
        );
    }
    Ok(per_call)
}

fn unreadable_hint(folder: &Path) -> String {
    format!("see the profile in {}", folder.display())
}

/// Returns the last figure and the compiler that it was measured with.
fn committed(checkout: &Checkout) -> Result<(u64, String), Failure> {
    let text = fs::read_to_string(checkout.path(FIGURES)).map_err(|error| unusable(&error))?;
    let last = text.lines().rfind(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let figure = last.and_then(|line| {
        let (count, rest) = line.split_once(' ')?;
        Some((count.parse().ok()?, rest.split_once(':')?.0.to_owned()))
    });
    figure.ok_or_else(|| Failure::new(format!("`{FIGURES}` has no line `COUNT COMPILER: REASON`")))
}

fn compiler_version() -> Result<String, Failure> {
    let output = Command::new("rustc").arg("--version").output().map_err(|error| unusable(&error))?;
    let version = String::from_utf8_lossy(&output.stdout);
    Ok(version.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

fn make_empty(folder: &PathBuf) -> std::io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::new(format!("the instructions of a call cannot be counted: {error}"))
}
