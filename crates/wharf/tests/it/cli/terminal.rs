//! Runs the program on a terminal, which a Python script provides.

use super::CliWorkspace;
use crate::servers::workspace::program;

/// Runs the program on a terminal and returns everything it displayed.
pub(super) fn run(workspace: &CliWorkspace, words: &[&str]) -> String {
    run_and_type(workspace, words, "", "").0
}

/// Runs the program, types `typed` when `until` is displayed, and returns the display and the exit code.
pub(super) fn run_and_type(
    workspace: &CliWorkspace,
    words: &[&str],
    until: &str,
    typed: &str,
) -> (String, Option<i32>) {
    workspace.write("terminal.py", include_str!("terminal.py"));
    let output = workspace
        .command(&program("python3"))
        .arg(workspace.path("terminal.py"))
        .arg(env!("CARGO_BIN_EXE_wharf"))
        .args(words)
        .envs([("TERM", "xterm"), ("UNTIL", until), ("TYPED", typed)])
        .output()
        .expect("python3 runs");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}
