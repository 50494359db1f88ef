//! Builds and runs the fuzz targets without cargo-fuzz.
//!
//! libFuzzer needs only coverage counters, and LLVM emits those on a stable toolchain too. The sanitizers of
//! nightly find memory errors, which a workspace without `unsafe` does not need.

mod log;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::checkout::{self, Checkout};
use crate::failure::Failure;
use crate::steps::Steps;

/// Kind of a fuzz run.
#[derive(Debug, PartialEq)]
pub(crate) enum FuzzMode {
    /// A short, reproducible run: fixed seed, checked-in inputs only.
    Smoke,
    /// A run that continues from the corpus of earlier runs.
    Explore { runs: u64 },
    /// One run of one input.
    Replay { input: PathBuf },
}

const SMOKE_RUNS: u64 = 10_000;

/// Flags for edge counters, the table that maps counters to edges, and comparison operands, with which the fuzzer
/// can guess the other side of an `==`.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

const BUILD: [&str; 6] = ["build", "--locked", "--release", "--bins", "--manifest-path", "fuzz/Cargo.toml"];

/// Limits for one input: 4 KiB, five seconds, two gigabytes of memory.
const LIMITS: [&str; 3] = ["-max_len=4096", "-timeout=5", "-rss_limit_mb=2048"];

pub(crate) fn run(
    checkout: &Checkout,
    steps: &mut Steps,
    wanted: Option<&str>,
    mode: &FuzzMode,
) -> Result<(), Failure> {
    if cfg!(windows) {
        eprintln!("\n==> fuzz targets: left out, libFuzzer is not used on Windows");
        return Ok(());
    }
    let targets = choose(targets(checkout)?, wanted)?;
    let programs = steps.run("build the fuzz targets", || build(checkout))?;
    for name in targets {
        steps.run(format!("fuzz {name}"), || Target { checkout, name: &name }.run(&programs, mode))?;
    }
    Ok(())
}

/// Checks for the C++ compiler that libFuzzer needs. Without this check, a build script reports a missing compiler
/// in forty lines.
pub(crate) fn check_compiler() -> Result<(), Failure> {
    if cfg!(windows) {
        return Ok(());
    }
    let named = env::var("CXX").unwrap_or_default();
    let program = named.split_whitespace().next().unwrap_or("c++");
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(drop).map_err(|error| {
        Failure::new(format!("could not start the C++ compiler `{program}`: {error}"))
            .hint("install one (Debian: `apt install g++`), or name yours in `CXX`")
    })
}

/// Lists the fuzz targets: every file in `fuzz/targets` is one.
fn targets(checkout: &Checkout) -> Result<Vec<String>, Failure> {
    let files = file_names(&checkout.path("fuzz/targets"));
    let names: Vec<_> = files.iter().filter_map(|file| file.strip_suffix(".rs")).map(str::to_owned).collect();
    if names.is_empty() {
        return Err(
            Failure::new("there is no fuzz target").hint("restore `fuzz/targets` from version control")
        );
    }
    Ok(names)
}

fn choose(all: Vec<String>, wanted: Option<&str>) -> Result<Vec<String>, Failure> {
    match wanted {
        None => Ok(all),
        Some(name) if all.iter().any(|known| known == name) => Ok(vec![name.to_owned()]),
        Some(name) => Err(Failure::new(format!("there is no fuzz target `{name}`"))
            .hint(format!("the targets are: {}", all.join(", ")))),
    }
}

/// Builds all targets and returns the folder of the programs. The explicit `--target` keeps the flags out of build
/// scripts, and the separate target folder keeps them out of all other builds.
fn build(checkout: &Checkout) -> Result<PathBuf, Failure> {
    check_compiler()?;
    let folder = checkout.target().join("fuzz");
    let host = host()?;
    let mut command = checkout.cargo_command();
    command
        .args(BUILD)
        .args(["--target", &host])
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", RUSTFLAGS)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    checkout::run(&mut command).map_err(|failure| {
        failure.hint("if the lock file must change, run `cargo xtask generate` and commit fuzz/Cargo.lock")
    })?;
    Ok(folder.join(host).join("release"))
}

fn host() -> Result<String, Failure> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "host-tuple"]).output();
    output
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .ok_or_else(|| {
            Failure::new("`rustc` did not print the host target").hint("install the toolchain with rustup")
        })
}

struct Target<'a> {
    checkout: &'a Checkout,
    name: &'a str,
}

impl Target<'_> {
    fn run(&self, programs: &Path, mode: &FuzzMode) -> Result<(), Failure> {
        let artifacts = self.own_folder("artifacts");
        create_folder(&artifacts)?;
        let mut command = Command::new(programs.join(self.name));
        // libFuzzer appends the file name directly to the prefix.
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).arg("-print_funcs=0").args(LIMITS);
        self.add_mode_arguments(&mut command, mode)?;
        let line = checkout::announce(&command);
        let outcome =
            log::run_filtered(&mut command).map_err(|error| checkout::could_not_start(&line, &error))?;
        if outcome.passed { Ok(()) } else { Err(self.crash_failure(mode, outcome.failing_input)) }
    }

    fn add_mode_arguments(&self, command: &mut Command, mode: &FuzzMode) -> Result<(), Failure> {
        match mode {
            FuzzMode::Smoke => {
                let corpus = self.checkout.target().join("fuzz/smoke").join(self.name);
                // A corpus from an earlier run would make this run different.
                let _absent = fs::remove_dir_all(&corpus);
                create_folder(&corpus)?;
                command.args([format!("-runs={SMOKE_RUNS}"), "-seed=1".to_owned()]);
                command.arg(corpus).arg(self.own_folder("seeds"));
            }
            FuzzMode::Explore { runs } => {
                let corpus = self.own_folder("corpus");
                create_folder(&corpus)?;
                command.arg(format!("-runs={runs}")).arg(corpus).arg(self.own_folder("seeds"));
            }
            FuzzMode::Replay { input } => {
                command.arg(input);
            }
        }
        Ok(())
    }

    fn crash_failure(&self, mode: &FuzzMode, failing_input: Option<PathBuf>) -> Failure {
        let name = self.name;
        let failure = Failure::new(format!("fuzz target `{name}` failed; see its output above"));
        let input = match mode {
            FuzzMode::Replay { input } => Some(input.clone()),
            FuzzMode::Smoke | FuzzMode::Explore { .. } => failing_input,
        };
        match input.map(|input| self.checkout.shown(&input)) {
            Some(input) => failure.hint(format!(
                "reproduce it with `cargo xtask fuzz {name} --input {input}`; \
                 once it is fixed, keep that file in fuzz/seeds/{name}"
            )),
            None => failure.hint("it left no input behind: was it killed, or out of memory?"),
        }
    }

    fn own_folder(&self, kind: &str) -> PathBuf {
        self.checkout.path("fuzz").join(kind).join(self.name)
    }
}

/// Lists the names in a folder, sorted. A missing folder is empty.
fn file_names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn create_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        Failure::new(format!("could not make `{}`: {error}", folder.display()))
            .hint("make its parent writable")
    })
}
