//! The program on a terminal, which is a Python script's.

use super::Place;
use crate::servers::place::program;

/// Runs the program to its end on a terminal, and returns all that was shown there.
pub(super) fn run(place: &Place, words: &[&str]) -> String {
    place.write("terminal.py", include_str!("terminal.py"));
    let output = place
        .command(&program("python3"))
        .arg(place.path("terminal.py"))
        .arg(env!("CARGO_BIN_EXE_wharf"))
        .args(words)
        .env("TERM", "xterm")
        .output()
        .expect("python3 runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
