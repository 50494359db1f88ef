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

/// The file of figures: one line for each, with its reason. The last line applies.
const FIGURES: &str = "xtask/instructions.txt";

/// Allowed deviation from the figure, in percent.
const TOLERANCE_PERCENT: f64 = 3.0;

/// Numbers of calls of the two runs that are subtracted.
const CALLS: [u64; 2] = [100, 1_100];

/// Number of measurements. The smallest counts, because a disturbance only adds instructions.
const MEASUREMENTS: usize = 2;

const BUILD: [&str; 5] = ["build", "--locked", "--release", "--package", "wharf"];

/// Compares the program that is built from `sources` with the committed figure.
pub(crate) fn check(checkout: &Checkout, steps: &mut Steps, sources: &Path) -> Result<(), Failure> {
    let Some(counted) = measure(checkout, steps, sources)? else { return Ok(()) };
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

/// Counts the program of this checkout and appends the count to the file of figures.
pub(crate) fn update(checkout: &Checkout, steps: &mut Steps, reason: &str) -> Result<(), Failure> {
    let Some(counted) = measure(checkout, steps, &checkout.path(""))? else { return Ok(()) };
    let file = checkout.path(FIGURES);
    let before = fs::read_to_string(&file).map_err(|error| unusable(&error))?;
    let line = format!("{counted} {}: {reason}\n", compiler_version()?);
    eprintln!("{line}");
    fs::write(&file, before + &line).map_err(|error| unusable(&error))
}

/// Counts the instructions of one call. Returns `None` on systems without Callgrind.
fn measure(checkout: &Checkout, steps: &mut Steps, sources: &Path) -> Result<Option<u64>, Failure> {
    if !cfg!(target_os = "linux") {
        eprintln!("instructions are counted on Linux only");
        return Ok(None);
    }
    provision::valgrind(steps)?;
    steps.run("program", || checkout::run(checkout.cargo_command().current_dir(sources).args(BUILD)))?;
    let program = checkout.target().join("release/wharf");
    let program = program.canonicalize().map_err(|error| unusable(&error))?;
    steps.run("instructions of a call", || {
        let upstream = EchoServer::start().map_err(|error| unusable(&error))?;
        let counts = (0..MEASUREMENTS).map(|_| per_call(checkout, &program, &upstream));
        let counts: Vec<u64> = counts.collect::<Result<_, _>>()?;
        eprintln!("counted {counts:?}");
        Ok(counts.into_iter().min())
    })
}

fn per_call(checkout: &Checkout, program: &Path, upstream: &EchoServer) -> Result<u64, Failure> {
    let folder = checkout.target().join("instructions");
    let mut counts = [0; 2];
    for (calls, count) in CALLS.into_iter().zip(&mut counts) {
        make_empty(&folder).map_err(|error| unusable(&error))?;
        let profile = gateway::profile_calls(program, &folder, upstream.port(), calls)?;
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
