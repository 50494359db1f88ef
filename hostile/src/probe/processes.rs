//! Reads memory use and processes from /proc.

use rustix::process::{Pid, Signal, kill_process};
use std::{fs, time::Duration};
use tokio::time::{self, Instant};

/// Time that processes get to exit.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// An environment variable that all descendants of a server inherit, so that they can be found.
#[derive(Clone, Debug)]
pub struct Mark(String);

impl Mark {
    /// Name of the variable.
    pub const NAME: &'static str = "HOSTILE_MARK";

    /// Creates a marker with this value.
    pub fn new(value: &str) -> Mark {
        Mark(value.to_owned())
    }

    /// Returns the value.
    pub fn value(&self) -> &str {
        &self.0
    }

    /// Finds the processes that have the variable.
    fn processes(&self) -> Vec<Pid> {
        let mark = format!("{}={}", Mark::NAME, self.0);
        let marked = |environ: Vec<u8>| environ.split(|byte| *byte == 0).any(|it| it == mark.as_bytes());
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes
            .filter(|it| fs::read(it.path().join("environ")).is_ok_and(marked))
            .filter_map(|it| Pid::from_raw(it.file_name().to_str()?.parse().ok()?))
            .collect()
    }

    /// Waits for the processes to exit, kills the rest, and returns how many it killed.
    pub async fn leftovers(&self) -> usize {
        let deadline = Instant::now() + EXIT_GRACE;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() >= deadline {
                // A process that has exited meanwhile needs no signal.
                left.iter().for_each(|pid| _ = kill_process(*pid, Signal::KILL));
                return left.len();
            }
            time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns the peak memory of this process, in KiB.
pub fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Returns the growth of peak memory since `before`, in KiB.
pub fn grown_kib(before: u64) -> u64 {
    peak_kib().saturating_sub(before)
}
