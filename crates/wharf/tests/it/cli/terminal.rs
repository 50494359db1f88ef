//! The program on a terminal, which is a Python script's.

use super::Place;
use crate::servers::place::program;

/// Runs the program to its end on a terminal, and returns all that was shown there.
pub(super) fn run(place: &Place, words: &[&str]) -> String {
    run_and_type(place, words, "", "").0
}

/// Types something as soon as some words are shown; and returns the exit code too.
pub(super) fn run_and_type(place: &Place, words: &[&str], until: &str, typed: &str) -> (String, Option<i32>) {
    place.write("terminal.py", include_str!("terminal.py"));
    let output = place
        .command(&program("python3"))
        .arg(place.path("terminal.py"))
        .arg(env!("CARGO_BIN_EXE_wharf"))
        .args(words)
        .envs([("TERM", "xterm"), ("UNTIL", until), ("TYPED", typed)])
        .output()
        .expect("python3 runs");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}
