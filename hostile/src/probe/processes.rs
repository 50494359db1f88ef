//! Memory and processes, as /proc shows them.

use rustix::process::{Pid, Signal, kill_process};
use std::{fs, time::Duration};
use tokio::time::{self, Instant};

/// How long something may be left after the end.
const SOON: Duration = Duration::from_secs(2);

/// A variable in the environment of everything that a server starts, by which it is found wherever it went.
#[derive(Clone, Debug)]
pub struct Mark(String);

impl Mark {
    /// The name of the variable.
    pub const NAME: &'static str = "HOSTILE_MARK";

    /// A mark of its own.
    pub fn new(value: &str) -> Mark {
        Mark(value.to_owned())
    }

    /// Its value.
    pub fn value(&self) -> &str {
        &self.0
    }

    /// The processes that carry it.
    fn processes(&self) -> Vec<Pid> {
        let mark = format!("{}={}", Mark::NAME, self.0);
        let marked = |environ: Vec<u8>| environ.split(|byte| *byte == 0).any(|it| it == mark.as_bytes());
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes
            .filter(|it| fs::read(it.path().join("environ")).is_ok_and(marked))
            .filter_map(|it| Pid::from_raw(it.file_name().to_str()?.parse().ok()?))
            .collect()
    }

    /// How many are left when they have had their time to go. They are not left any longer.
    pub async fn leftovers(&self) -> usize {
        let until = Instant::now() + SOON;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() >= until {
                // One that is gone meanwhile needs no signal.
                left.iter().for_each(|pid| _ = kill_process(*pid, Signal::KILL));
                return left.len();
            }
            time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The most memory that this process has used so far.
pub fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// By how much that is more than it was.
pub fn grown_kib(before: u64) -> u64 {
    peak_kib().saturating_sub(before)
}
