//! Parses the arguments of `cargo xtask` into a `Task`. Runs nothing.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::fuzz::FuzzMode;

#[derive(Debug, PartialEq)]
pub(crate) enum Task {
    Help(&'static str),
    Test,
    Provision,
    Console,
    Browser,
    Generate,
    Fuzz { target: Option<String>, mode: FuzzMode },
    Bench,
    Load { before: Option<PathBuf> },
    Instructions { reason: Option<String> },
    Idle,
    Soak,
    Kills { times: u64 },
}

const HELP: &str = "\
Development tasks of this repository.

Usage: cargo xtask TASK

  test        set up what the tests need and run them all: unit, integration and
              doc tests, the web page in a browser, then a short run of every fuzz
              target
  provision   only set up what the tests need
  console     check, test and build the web page in console/
  browser     test the web page in Chromium, in front of a real gateway
  generate    update the generated files
  fuzz        run the fuzz targets for longer, or one of them on one input
  bench       run the benchmarks, measure the agent, then `load`
  load        measure the overhead of the gateway, and write docs/performance.md
  instructions
              compare the instructions of a call with the committed figure
  idle        measure the idle cost: a hundred servers, two minutes
  soak        make 100,000 calls over each transport, with servers that crash
  kills       kill the gateway under load, and check that no acknowledged call is lost

`cargo xtask TASK --help` shows more.
";

const TEST_HELP: &str = "\
Set up what the tests need and run them all.

Usage: cargo xtask test

Unit, integration and doc tests of the workspace with all features, the tests of the
web page, then 10,000 inputs for each fuzz target, always the same ones. Needs a C++ compiler, and npm,
Python and (on Linux) podman for what `cargo xtask provision` sets up.
";

const PROVISION_HELP: &str = "\
Set up what the tests need: programs of other package managers.

Usage: cargo xtask provision

They go into the folder that WHARF_TOOLS names, else into `wharf-tools` of the
user's cache, and stay there. Programs that are installed are not fetched again.
";

const CONSOLE_HELP: &str = "\
Check, test and build the web page in console/.

Usage: cargo xtask console

Installs its npm packages, writes the types of the API, checks types and style,
builds it into crates/wharf/console, and runs its unit tests. Fails if the build
output or the types differ from what is checked in.
";

const BROWSER_HELP: &str = "\
Test the web page in Chromium, in front of a real gateway.

Usage: cargo xtask browser

Uses the Chromium that CHROMIUM names, else the one of the system, which is
installed first if that is possible.
";

const GENERATE_HELP: &str = "\
Update the generated files: schema/agent.schema.json and fuzz/Cargo.lock.

Usage: cargo xtask generate

Run it when a test reports that a generated file is out of date, and commit the
result.
";

const FUZZ_HELP: &str = "\
Run the fuzz targets, each from where its last run stopped.

Usage: cargo xtask fuzz [TARGET] [--runs N]
       cargo xtask fuzz TARGET --input FILE

  TARGET         a file of fuzz/targets without `.rs`; all of them when absent
  --runs N       inputs for each target (10000)
  --input FILE   run this one input: how a crash is reproduced

Works with a stable toolchain and a C++ compiler; cargo-fuzz is not needed.
";

const BENCH_HELP: &str = "\
Run the benchmarks, measure the agent, then `load`.

Usage: cargo xtask bench

The benchmarks are those of the loader, of the wire and of the Todo server.

The agent is measured beside the bare stream of a scripted model and beside
openai-agents from PyPI; docs/agent-performance.md has the result.
";

const LOAD_HELP: &str = "\
Measure the overhead of the gateway, and write docs/performance.md.

Usage: cargo xtask load [--before PROGRAM]

  --before PROGRAM   measure this earlier build of wharf too, in the same rounds; the
                     tables go to the terminal, and docs/performance.md stays as it is

`wharf serve` beside the least that any gateway could cost and beside `mcp-proxy`
from the crate registry, which is installed first; all as they are shipped, in one
run, in turns; then `wharf serve` as it grows. Takes about fifteen minutes, and needs an
otherwise idle machine.
";

const INSTRUCTIONS_HELP: &str = "\
Compare the instructions that `wharf serve` executes for one call with the figure in
xtask/instructions.txt. More than 3 % of difference fails.

Usage: cargo xtask instructions [--update REASON]

  --update REASON   add the count to the file, with this reason; the last line applies

Builds the program in release mode and runs it under Valgrind, which Debian's package
manager installs if it is missing. Takes about half a minute after the build. A busy
machine does not matter. Linux only.
";

const IDLE_HELP: &str = "\
Measure the cost of idle connections to servers.

Usage: cargo xtask idle

A host with 50 stdio and 50 HTTP servers waits for two minutes. The host and its
supervisors may use 0.2 % of one core; more fails. Linux only.
";

const SOAK_HELP: &str = "\
Make a hundred thousand calls over each transport, on a server that is killed or
resets its connections at random moments more than two thousand times.

Usage: cargo xtask soak

Always with the same seed. Prints one line for each transport, and fails if a call
had no outcome in time, if a response reached the wrong caller, or if a call ran twice
or ran although it was reported as not sent. `cargo xtask test` does the
same with two thousand calls.
";

const KILLS_HELP: &str = "\
Kill the gateway at random moments under load, start it again, and look up every
call that it had acknowledged.

Usage: cargo xtask kills [--times N]

  --times N      kills on SQLite (1000); on PostgreSQL there is one for each four

Clients call over REST and over MCP at once. Fails if a call that was answered has
no record. `cargo xtask test` does the same a dozen times.
";

impl Task {
    pub(crate) fn parse(words: &[String]) -> Result<Self, Failure> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some((&name, rest)) = words.split_first() else {
            return Ok(Self::Help(HELP));
        };
        let asks_for_help = rest.iter().any(|word| matches!(*word, "-h" | "--help"));
        match name {
            "-h" | "--help" | "help" => Ok(Self::Help(HELP)),
            "test" if asks_for_help => Ok(Self::Help(TEST_HELP)),
            "provision" if asks_for_help => Ok(Self::Help(PROVISION_HELP)),
            "console" if asks_for_help => Ok(Self::Help(CONSOLE_HELP)),
            "browser" if asks_for_help => Ok(Self::Help(BROWSER_HELP)),
            "generate" if asks_for_help => Ok(Self::Help(GENERATE_HELP)),
            "fuzz" if asks_for_help => Ok(Self::Help(FUZZ_HELP)),
            "soak" if asks_for_help => Ok(Self::Help(SOAK_HELP)),
            "bench" if asks_for_help => Ok(Self::Help(BENCH_HELP)),
            "load" if asks_for_help => Ok(Self::Help(LOAD_HELP)),
            "instructions" if asks_for_help => Ok(Self::Help(INSTRUCTIONS_HELP)),
            "idle" if asks_for_help => Ok(Self::Help(IDLE_HELP)),
            "kills" if asks_for_help => Ok(Self::Help(KILLS_HELP)),
            "test" => without_arguments(rest, Self::Test),
            "provision" => without_arguments(rest, Self::Provision),
            "console" => without_arguments(rest, Self::Console),
            "browser" => without_arguments(rest, Self::Browser),
            "generate" => without_arguments(rest, Self::Generate),
            "bench" => without_arguments(rest, Self::Bench),
            "load" => load(rest),
            "soak" => without_arguments(rest, Self::Soak),
            "instructions" => instructions(rest),
            "idle" => without_arguments(rest, Self::Idle),
            "fuzz" => fuzz(rest),
            "kills" => kills(rest),
            other => {
                Err(Failure::new(format!("there is no task `{other}`"))
                    .hint("`cargo xtask --help` lists them"))
            }
        }
    }
}

fn without_arguments(rest: &[&str], task: Task) -> Result<Task, Failure> {
    match rest.first() {
        None => Ok(task),
        Some(word) => Err(unexpected(word)),
    }
}

fn fuzz(rest: &[&str]) -> Result<Task, Failure> {
    const INPUT: (&str, &str) = ("--input", "for example `--input fuzz/artifacts/load/crash-1f2e`");
    let (mut target, mut runs, mut input) = (None, None, None);
    let mut words = rest.iter();
    while let Some(&word) = words.next() {
        match word {
            "--runs" => runs = Some(number(word, words.next())?),
            "--input" => input = Some(file(INPUT, words.next())?),
            flag if flag.starts_with('-') => return Err(unexpected(flag)),
            _ if target.is_some() => return Err(unexpected(word)),
            name => target = Some(name.to_owned()),
        }
    }
    let mode = match (runs, input) {
        (Some(_), Some(_)) => {
            return Err(Failure::new("`--runs` and `--input` exclude each other").hint("drop one"));
        }
        (_, Some(_)) if target.is_none() => {
            return Err(Failure::new("`--input` needs a target").hint("cargo xtask fuzz TARGET --input FILE"));
        }
        (_, Some(input)) => FuzzMode::Replay { input },
        (runs, None) => FuzzMode::Explore { runs: runs.unwrap_or(10_000) },
    };
    Ok(Task::Fuzz { target, mode })
}

fn load(rest: &[&str]) -> Result<Task, Failure> {
    const EXAMPLE: (&str, &str) = ("--before", "for example `--before ../earlier/wharf`");
    match rest {
        [] => Ok(Task::Load { before: None }),
        ["--before"] => Ok(Task::Load { before: Some(file(EXAMPLE, None)?) }),
        ["--before", program] => Ok(Task::Load { before: Some(file(EXAMPLE, Some(program))?) }),
        ["--before", _, word, ..] | [word, ..] => Err(unexpected(word)),
    }
}

fn instructions(rest: &[&str]) -> Result<Task, Failure> {
    match rest {
        [] => Ok(Task::Instructions { reason: None }),
        ["--update", reason] if !reason.trim().is_empty() => {
            Ok(Task::Instructions { reason: Some((*reason).to_owned()) })
        }
        ["--update", ..] => {
            Err(Failure::new("`--update` needs a reason").hint("for example `--update \"calls are signed\"`"))
        }
        [word, ..] => Err(unexpected(word)),
    }
}

fn kills(rest: &[&str]) -> Result<Task, Failure> {
    match rest {
        [] => Ok(Task::Kills { times: 1_000 }),
        ["--times"] => Ok(Task::Kills { times: number("--times", None)? }),
        ["--times", times] => Ok(Task::Kills { times: number("--times", Some(times))? }),
        ["--times", _, word, ..] | [word, ..] => Err(unexpected(word)),
    }
}

fn number(flag: &str, word: Option<&&str>) -> Result<u64, Failure> {
    word.and_then(|word| word.replace(['_', ','], "").parse().ok()).filter(|number| *number > 0).ok_or_else(
        || Failure::new(format!("`{flag}` needs a number")).hint(format!("for example `{flag} 1000000`")),
    )
}

fn file((flag, hint): (&str, &str), word: Option<&&str>) -> Result<PathBuf, Failure> {
    let missing = || Failure::new(format!("`{flag}` needs a file")).hint(hint);
    let file = PathBuf::from(word.ok_or_else(missing)?);
    std::path::absolute(&file)
        .ok()
        .filter(|file| file.is_file())
        .ok_or_else(|| Failure::new(format!("there is no file `{}`", file.display())).hint("check the path"))
}

fn unexpected(word: &str) -> Failure {
    Failure::new(format!("unexpected `{word}`")).hint("`cargo xtask TASK --help` shows the arguments")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, expected: &str) {
        let words: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        let parsed = match Task::parse(&words) {
            Ok(Task::Help(text)) => text.lines().next().unwrap_or_default().to_owned(),
            Ok(task) => format!("{task:?}"),
            Err(failure) => failure.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        assert_eq!(parsed, expected, "cargo xtask {typed}");
    }

    #[test]
    fn arguments_are_parsed() {
        check("", "Development tasks of this repository.");
        check("--help", "Development tasks of this repository.");
        check("test", "Test");
        check("test --help", "Set up what the tests need and run them all.");
        check("test now", "error: unexpected `now`");
        check("provision", "Provision");
        check("provision node", "error: unexpected `node`");
        check("console", "Console");
        check("console now", "error: unexpected `now`");
        check("browser", "Browser");
        check("generate", "Generate");
        check("bench -h", "Run the benchmarks, measure the agent, then `load`.");
        check("load", "Load { before: None }");
        check("load --before", "error: `--before` needs a file");
        check("load --before nowhere", "error: there is no file `nowhere`");
        check("load --after nowhere", "error: unexpected `--after`");
        check("instructions", "Instructions { reason: None }");
        check("instructions --update signed", "Instructions { reason: Some(\"signed\") }");
        check("instructions --update", "error: `--update` needs a reason");
        check("instructions 5", "error: unexpected `5`");
        check("idle", "Idle");
        check("idle 5", "error: unexpected `5`");
        check("soak", "Soak");
        check("soak 5", "error: unexpected `5`");
        check("kills", "Kills { times: 1000 }");
        check("kills --times 20", "Kills { times: 20 }");
        check("kills --times", "error: `--times` needs a number");
        check("kills --times 20 now", "error: unexpected `now`");
        check("kills now", "error: unexpected `now`");
        check("tset", "error: there is no task `tset`");
        check("fuzz", "Fuzz { target: None, mode: Explore { runs: 10000 } }");
        check("fuzz load --runs 2_000", "Fuzz { target: Some(\"load\"), mode: Explore { runs: 2000 } }");
        check("fuzz --runs 5 load", "Fuzz { target: Some(\"load\"), mode: Explore { runs: 5 } }");
        check("fuzz --runs", "error: `--runs` needs a number");
        check("fuzz --runs 0", "error: `--runs` needs a number");
        check("fuzz --runs many", "error: `--runs` needs a number");
        check("fuzz load load", "error: unexpected `load`");
        check("fuzz --jobs 2", "error: unexpected `--jobs`");
        check("fuzz --input Cargo.toml", "error: `--input` needs a target");
        check("fuzz load --input nowhere", "error: there is no file `nowhere`");
        check("fuzz load --input Cargo.toml --runs 3", "error: `--runs` and `--input` exclude each other");
    }
}
