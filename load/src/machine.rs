//! Reads CPU time, memory and child processes from /proc.

use std::{collections::HashMap, fs, path::PathBuf};

/// Length of a clock tick in microseconds. Linux always reports 100 ticks per second to programs.
const TICK_MICROS: u64 = 10_000;

/// Positions of fields in `/proc/PID/stat`, counted after the process name.
const PARENT: usize = 1;
const USER: usize = 11;
const SYSTEM: usize = 12;

/// A gateway: its main process id. Child processes of the same program belong to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gateway(pub(crate) u32);

impl Gateway {
    /// Returns the CPU time used so far, in microseconds.
    pub(crate) fn micros(self) -> u64 {
        self.processes().into_iter().map(micros).sum()
    }

    /// Returns the memory of the main process, in KiB.
    pub(crate) fn kib(self) -> u64 {
        kib(self.0)
    }

    /// Returns the processes of the gateway, without the servers behind it.
    fn processes(self) -> Vec<u32> {
        let Gateway(first) = self;
        let program = program(first);
        let mut parents: HashMap<u32, Vec<u32>> = HashMap::new();
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in all.filter_map(|it| it.file_name().to_str()?.parse().ok()) {
            let parent = field(pid, PARENT).and_then(|it| u32::try_from(it).ok());
            parent.into_iter().for_each(|it| parents.entry(it).or_default().push(pid));
        }
        let mut ours = vec![first];
        let mut next = 0;
        while let Some(pid) = ours.get(next).copied() {
            let children = parents.remove(&pid).unwrap_or_default();
            let is_ours = |it: &u32| is_supervisor(*it) || program.is_some() && self::program(*it) == program;
            ours.extend(children.into_iter().filter(is_ours));
            next += 1;
        }
        ours
    }
}

/// Detects a supervisor process by its arguments, because other users than root cannot read which program it runs.
fn is_supervisor(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"__supervise")
}

fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

fn micros(pid: u32) -> u64 {
    [USER, SYSTEM].into_iter().filter_map(|it| field(pid, it)).sum::<u64>() * TICK_MICROS
}

fn kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    line.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn field(pid: u32, field: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces and brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(field)?.parse().ok()
}

/// Describes this machine for the page.
pub(crate) fn describe() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model
        .lines()
        .find_map(|it| it.strip_prefix("model name"))
        .map(|it| it.trim_start_matches([' ', '\t', ':']));
    format!("{cpus} cores of {}, Linux {}", model.unwrap_or("an unknown processor"), kernel.trim())
}

/// Returns the number of processes that wanted to run in the last minute. Above the number of cores, times are too long.
pub(crate) fn load_average() -> String {
    let averages = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split(' ').next().unwrap_or_default().to_owned()
}
