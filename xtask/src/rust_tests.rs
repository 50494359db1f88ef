//! Runs cargo's tests, and the few that fail once more, alone.
//!
//! The suite starts a thousand real processes on whatever cores there are. A test that fails because the machine was
//! busy must not hide the result of the others. It is still a bug: the summary names it.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::checkout::{self, Checkout};
use crate::failure::Failure;
use crate::steps::Steps;

/// More failures than this are no accident.
const MAX_RERUNS: usize = 3;
/// Time to read the last output after cargo has ended. A process that a test left behind may hold the pipe open.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs all tests of all targets. The doc tests are not among them.
pub(crate) fn all(checkout: &Checkout, steps: &mut Steps) -> Result<(), Failure> {
    let report = steps.run("tests", || {
        let report = run(test_command(checkout, &["--all-targets", "--no-fail-fast"]))?;
        if report.passed || report.may_be_rerun() { Ok(report) } else { Err(tests_failed(&report.failed)) }
    })?;
    for FailedTarget { selection, tests } in &report.failed {
        let name = format!("again, alone: {}", tests.join(", "));
        steps.run(name, || run_again(checkout, selection, tests))?;
        for test in tests {
            steps.note(format!("flaky: `{test}` failed, and passed alone; find its race"));
        }
    }
    Ok(())
}

/// Selects the target in the whole workspace: with one package cargo would build with other features.
fn run_again(checkout: &Checkout, selection: &[String], tests: &[String]) -> Result<(), Failure> {
    let mut cargo = test_command(checkout, selection);
    cargo.args(["--", "--exact", "--test-threads", "1"]).args(tests);
    let report = run(cargo)?;
    let ran = tests.iter().all(|test| report.succeeded.contains(test));
    if report.passed && ran { Ok(()) } else { Err(tests_failed(&report.failed)) }
}

fn test_command(checkout: &Checkout, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut cargo = checkout.cargo_command();
    cargo.args(["test", "--locked", "--workspace", "--all-features"]).args(arguments);
    cargo
}

fn tests_failed(failed: &[FailedTarget]) -> Failure {
    let names: Vec<_> = failed.iter().flat_map(|target| &target.tests).map(String::as_str).collect();
    let sentence = match names.as_slice() {
        [] => "the tests failed".to_owned(),
        names => format!("{} failed: {}", names.len(), names.join(", ")),
    };
    Failure::new(sentence).hint("see the messages above; run one test with `cargo test --workspace NAME`")
}

/// Runs cargo, shows everything it prints, and reports which tests passed and failed.
fn run(mut cargo: Command) -> Result<TestReport, Failure> {
    let line = checkout::announce(&cargo);
    let could_not_start = |error: io::Error| checkout::could_not_start(&line, &error);
    // One pipe for both, so that the lines stay in order.
    let (reader, writer) = io::pipe().map_err(could_not_start)?;
    let stdout = writer.try_clone().map_err(could_not_start)?;
    let mut child = cargo.stdout(stdout).stderr(writer).spawn().map_err(could_not_start)?;
    // The pipe ends with its last writer, and the command is one.
    drop(cargo);
    let lines = show_lines(reader);
    let mut report = TestReport::default();
    let status = loop {
        match lines.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => report.read_line(&line),
            Err(mpsc::RecvTimeoutError::Disconnected) => break child.wait(),
            Err(mpsc::RecvTimeoutError::Timeout) => match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(error),
            },
        }
    };
    while let Ok(line) = lines.recv_timeout(LAST_OUTPUT_TIMEOUT) {
        report.read_line(&line);
    }
    report.passed = status.map_err(could_not_start)?.success();
    Ok(report)
}

/// Copies lines to stdout as they come, and passes them on. The thread ends with the last writer of the pipe.
fn show_lines(reader: io::PipeReader) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let _ = io::stdout().write_all(&line);
            let _ = sender.send(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
    });
    lines
}

/// The outcome of one run of `cargo test`.
#[derive(Default)]
struct TestReport {
    passed: bool,
    succeeded: Vec<String>,
    failed: Vec<FailedTarget>,
    /// Failed tests of the target that runs now.
    failing: Vec<String>,
}

struct FailedTarget {
    /// Arguments that select the target, such as `--test it`.
    selection: Vec<String>,
    tests: Vec<String>,
}

impl TestReport {
    fn read_line(&mut self, line: &str) {
        if let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            let name = name.trim_end_matches(" - should panic").to_owned();
            match result.trim_end() {
                "ok" => self.succeeded.push(name),
                "FAILED" => self.failing.push(name),
                _ => {}
            }
        } else if let Some(rest) = line.strip_prefix("error: test failed, to rerun pass `") {
            let mut words = rest.trim_end_matches('`').split(' ').map(str::to_owned);
            let mut selection = Vec::new();
            while let Some(word) = words.next() {
                if word == "-p" {
                    words.next();
                } else {
                    selection.push(word);
                }
            }
            self.failed.push(FailedTarget { selection, tests: std::mem::take(&mut self.failing) });
        }
    }

    /// Few tests failed, and each is known by name. A program that crashed names no test.
    fn may_be_rerun(&self) -> bool {
        let count: usize = self.failed.iter().map(|target| target.tests.len()).sum();
        let named = self.failed.iter().all(|target| !target.tests.is_empty());
        named && (1..=MAX_RERUNS).contains(&count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(output: &str) -> TestReport {
        let mut report = TestReport::default();
        output.lines().for_each(|line| report.read_line(line));
        report
    }

    #[test]
    fn failed_tests_are_known_with_their_target() {
        let report = report(
            "test a::b ... ok\n\
             test a::c ... FAILED\n\
             test a::d - should panic ... FAILED\n\
             test a::e ... ignored\n\
             error: test failed, to rerun pass `-p wharf --test it`\n\
             test x ... FAILED\n\
             error: test failed, to rerun pass `-p wharf-mcp --lib`\n",
        );
        assert!(report.may_be_rerun());
        assert_eq!(report.succeeded, ["a::b"]);
        let failed: Vec<_> =
            report.failed.iter().map(|it| (it.selection.join(" "), it.tests.join(" "))).collect();
        assert_eq!(failed, [("--test it".into(), "a::c a::d".into()), ("--lib".into(), "x".into())]);
    }

    #[test]
    fn many_failures_and_crashes_are_not_run_again() {
        let crash = "error: test failed, to rerun pass `-p wharf --test it`\n";
        assert!(!report(crash).may_be_rerun());
        assert!(!report(&format!("test a ... FAILED\n{crash}{crash}")).may_be_rerun());
        let many: String = (0..4).map(|at| format!("test t{at} ... FAILED\n")).collect();
        assert!(!report(&format!("{many}{crash}")).may_be_rerun());
        assert!(!report("error: could not compile `wharf`\n").may_be_rerun());
    }
}
