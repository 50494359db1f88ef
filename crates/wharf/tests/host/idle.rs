//! Measures the cost of idle connections to many servers.
//!
//! Counts only our own processes, the host and the supervisors, and not the servers.

use crate::servers::{
    background::{BackgroundServer, free_port},
    workspace::{caches, path_with},
};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{runtime, time::sleep};

/// Number of servers of each kind.
const SERVERS: usize = 50;

/// Maximum CPU use, in millionths of one processor: 0.2 %.
const LIMIT: u128 = 2_000;

/// Time before the measurement, in which the host can finish its startup work.
const SETTLE: Duration = Duration::from_secs(3);

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/orphans/server.sh");

const EVERYTHING: [&str; 3] = ["-y", "@modelcontextprotocol/server-everything", "streamableHttp"];

/// CPU time and wake-ups of some processes.
#[derive(Clone, Copy, Default)]
struct Used {
    processes: usize,
    nanoseconds: u128,
    wakes: u128,
}

pub(super) fn check(seconds: u64) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let port = free_port();
        let _far = BackgroundServer::listening_on(port, "npx", &EVERYTHING).await;
        let folder = TempDir::new().expect("a folder");
        write_files(folder.path(), port);
        let mut host = start(folder.path());
        sleep(SETTLE).await;
        let (before, since) = (measure(&host), Instant::now());
        sleep(Duration::from_secs(seconds)).await;
        let (after, took) = (measure(&host), since.elapsed());
        drop(host.stdin.take());
        assert!(host.wait().expect("an end").success(), "the host does not end well");
        check_usage(before, after, took);
    });
}

fn write_files(folder: &Path, port: u16) {
    let file = |name: &str, entry: &dyn Fn(usize) -> String| {
        let entries: String = (0..SERVERS)
            .map(|number| {
                format!("  - {{name: s{number}, description: d, type: mcp, server: x, {}}}\n", entry(number))
            })
            .collect();
        fs::write(folder.join(name), format!("tools:\n{entries}")).expect("a file");
    };
    file("stdio.yaml", &|_| format!("command: /bin/sh, args: ['{SERVER}', direct]"));
    file("http.yaml", &|_| format!("transport: http, url: 'http://127.0.0.1:{port}/mcp'"));
    fs::create_dir(folder.join("state")).expect("a folder");
    fs::write(folder.join("state/wharf.toml"), "[grants]\ncommands = [\"/bin/sh\"]\n").expect("a file");
}

/// Starts the host and waits until it has connected to all servers.
#[expect(clippy::disallowed_methods, reason = "it starts itself")]
fn start(folder: &Path) -> Child {
    let mut host = Command::new(std::env::current_exe().expect("a path"))
        .args(["be", "waiting", "supervised", "stdio.yaml", "http.yaml"])
        .current_dir(folder)
        .env("PATH", path_with([]))
        .envs(caches())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let stdout = host.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n", "the host has not reached its servers");
    host
}

/// Returns the usage of the host and of the supervisors below it.
fn measure(host: &Child) -> (Used, Used) {
    let pid = host.id();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a folder").flatten();
    let lists = threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
    let children: Vec<u32> = lists
        .flat_map(|it| it.split_whitespace().filter_map(|it| it.parse().ok()).collect::<Vec<_>>())
        .collect();
    (used(pid), children.into_iter().map(used).fold(Used::default(), Used::and))
}

fn used(pid: u32) -> Used {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a folder").flatten();
    threads.fold(Used { processes: 1, ..Used::default() }, |sum, thread| {
        let schedstat = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let nanoseconds =
            schedstat.split_whitespace().next().and_then(|it| it.parse().ok()).unwrap_or_default();
        let wakes = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
        let wakes = wakes.and_then(|it| it.trim().parse().ok()).unwrap_or_default();
        sum.and(Used { processes: 0, nanoseconds, wakes })
    })
}

impl Used {
    fn and(self, other: Used) -> Used {
        Used {
            processes: self.processes + other.processes,
            nanoseconds: self.nanoseconds + other.nanoseconds,
            wakes: self.wakes + other.wakes,
        }
    }

    fn since(self, before: Used) -> Used {
        // A thread that has exited no longer counts, so the total may shrink.
        let nanoseconds = self.nanoseconds.saturating_sub(before.nanoseconds);
        Used { processes: self.processes, nanoseconds, wakes: self.wakes.saturating_sub(before.wakes) }
    }
}

fn check_usage(before: (Used, Used), after: (Used, Used), took: Duration) {
    let (host, supervisors) = (after.0.since(before.0), after.1.since(before.1));
    let all = host.and(supervisors);
    println!("{SERVERS} stdio and {SERVERS} HTTP servers, idle for {:.1} s", took.as_secs_f64());
    println!("{:<12} {:>9} {:>10} {:>10} {:>10}", "", "processes", "CPU ms", "% of core", "wakes/s");
    for (name, used) in [("host", host), ("supervisors", supervisors), ("together", all)] {
        let Used { processes, nanoseconds, wakes } = used;
        let share = nanoseconds as f64 / took.as_nanos() as f64 * 100.0;
        let (milliseconds, wakes) = (nanoseconds as f64 / 1e6, wakes as f64 / took.as_secs_f64());
        println!("{name:<12} {processes:>9} {milliseconds:>10.2} {share:>10.4} {wakes:>10.2}");
    }
    assert_eq!(supervisors.processes, SERVERS, "each server has a supervisor");
    assert!(before.0.nanoseconds > 0, "the kernel counts nothing");
    assert!(
        all.nanoseconds * 1_000_000 <= LIMIT * took.as_nanos(),
        "waiting costs more than 0.2 % of a core"
    );
}
