//! Filters the output of a fuzz target.
//!
//! libFuzzer prints a line for every interesting input, hundreds a minute. Of those lines only milestones are
//! shown; the lines of the target itself are all shown.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Outcome of a fuzz run.
pub(super) struct FuzzOutcome {
    pub(super) passed: bool,
    /// Path of the input that failed, as libFuzzer saved it.
    pub(super) failing_input: Option<PathBuf>,
}

/// Runs the command to completion and prints its filtered stderr.
pub(super) fn run_filtered(command: &mut Command) -> io::Result<FuzzOutcome> {
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let mut failing_input = None;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            failing_input = failing_input_in(&line).or(failing_input);
            if is_worth_showing(&line) {
                eprintln!("    {line}");
            }
        }
    }
    Ok(FuzzOutcome { passed: child.wait()?.success(), failing_input })
}

fn failing_input_in(line: &str) -> Option<PathBuf> {
    line.split_once("; Test unit written to ").map(|(_, path)| PathBuf::from(path.trim_end()))
}

fn is_worth_showing(line: &str) -> bool {
    let is_progress = line.starts_with('#') && line[1..].starts_with(|c: char| c.is_ascii_digit());
    let is_milestone = ["INITED", "pulse", "DONE"].iter().any(|word| line.contains(word));
    let is_noise = line.starts_with("INFO: ")
        || line.starts_with("WARNING: Failed to find function")
        || line.starts_with("######")
        || line.contains("\" # Uses: ");
    is_milestone || !(is_progress || is_noise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milestones_and_output_of_the_target_are_shown() {
        let shown = r"
#13     INITED cov: 61 ft: 62 corp: 9/1052b exec/s: 0 rss: 31Mb
#4096   pulse  cov: 90 ft: 120 corp: 31/4Kb lim: 259 exec/s: 2048 rss: 40Mb
#10000  DONE   cov: 96 ft: 131 corp: 39/5Kb lim: 259 exec/s: 2500 rss: 44Mb
thread '<unnamed>' panicked at targets/load.rs:9:5:
# a line of the target itself
Done 10000 runs in 4 second(s)";
        let left_out = r#"
INFO: Running with entropic power schedule (0xFF, 100).
WARNING: Failed to find function "__sanitizer_print_stack_trace".
#14     NEW    cov: 72 ft: 88 corp: 10/1311b lim: 259 exec/s: 0 rss: 31Mb L: 259/259 MS: 1 CopyPart-
#64     REDUCE cov: 72 ft: 88 corp: 10/1290b lim: 259 exec/s: 0 rss: 31Mb L: 21/259 MS: 1 EraseBytes-
###### Recommended dictionary. ######
"\001\027" # Uses: 60"#;
        for line in shown.lines() {
            assert!(is_worth_showing(line), "{line}");
        }
        for line in left_out.lines().skip(1) {
            assert!(!is_worth_showing(line), "{line}");
        }
    }

    #[test]
    fn failing_input_is_found() {
        let line = "artifact_prefix='/a b/'; Test unit written to /a b/crash-1f2e";
        assert_eq!(failing_input_in(line), Some(PathBuf::from("/a b/crash-1f2e")));
        assert_eq!(failing_input_in("Done 10000 runs in 4 second(s)"), None);
    }
}
