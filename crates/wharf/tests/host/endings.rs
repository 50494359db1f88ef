//! Tests which server processes remain after the host crashes. Also shows that an unsupervised server does remain,
//! so that the other tests prove something.

use crate::{sandbox::Sandbox, shapes::SHAPES};
use rustix::process::{Signal, kill_process};
use std::time::Duration;
use tokio::{
    runtime,
    task::JoinSet,
    time::{Instant, sleep},
};
use wharf_mcp::stdio::StopTimeouts;

/// Ways in which the host crashes, and its exit code; `None` if a signal ends it.
const ENDINGS: &[(&str, Option<i32>)] = &[("panics", Some(101)), ("panics-twice", None)];

/// Time after which a process counts as left behind.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(2);

/// Timeout for one session from start to end.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn check_host_panic() {
    block_on(async {
        for (ending, code) in ENDINGS {
            check_all(|shape| check_panic(shape, ending, *code)).await;
        }
    });
}

/// Checks a panic of the host. All server processes exist by then, because the host panics after the servers respond.
async fn check_panic(shape: &str, ending: &str, code: Option<i32>) {
    let sandbox = Sandbox::new(shape);
    let mut host = sandbox.start_program(&itself(), &format!("be {ending} supervised agent.yaml"));
    assert_eq!(host.ended().await, code, "{shape} {ending}");
    sandbox.wait_for_no_processes().await;
}

pub(super) fn check_task_panic() {
    block_on(check_all(check_task));
}

/// Checks a panic of one task: the host continues, but the task's servers are stopped.
async fn check_task(shape: &str) {
    let sandbox = Sandbox::new(shape);
    let mut host = sandbox.start_program(&itself(), "be task-panics supervised agent.yaml");
    until(STEP_TIMEOUT, || sandbox.path("panicked").exists()).await;
    // The host still runs, so it goes through all shutdown steps (EOF, TERM, KILL).
    until(StopTimeouts::default().total() + LEFT_BEHIND_AFTER, || sandbox.running().is_empty()).await;
    assert_eq!(host.end(Signal::TERM).await, None, "{shape}: the host has ended by itself");
}

async fn check_all<F>(check: impl Fn(&'static str) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    for _ in 0..cycles() {
        let trials: JoinSet<()> = SHAPES.iter().map(|(shape, _)| check(shape)).collect();
        trials.join_all().await;
    }
}

pub(super) fn check_without_supervisor() {
    block_on(async {
        let sandbox = Sandbox::new("setsid");
        let mut host = sandbox.start_program(&itself(), "be waits alone agent.yaml");
        sandbox.wait_for_processes(2).await;
        host.end(Signal::KILL).await;
        sleep(LEFT_BEHIND_AFTER).await;
        let left = sandbox.running();
        for (pid, _) in &left {
            // The process may have just exited.
            _ = kill_process(*pid, Signal::KILL);
        }
        assert!(left.iter().any(|(_, line)| line.contains("sleep 985")), "nothing was left: {left:?}");
        sandbox.wait_for_no_processes().await;
    });
}

async fn until(time_limit: Duration, happened: impl Fn() -> bool) {
    let since = Instant::now();
    while !happened() {
        assert!(since.elapsed() < time_limit, "it does not happen within {time_limit:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn block_on(future: impl Future<Output = ()>) {
    runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future);
}

#[expect(clippy::disallowed_methods, reason = "it starts itself")]
fn itself() -> String {
    std::env::current_exe().expect("a path").display().to_string()
}

#[expect(clippy::disallowed_methods, reason = "the environment sets the number of cycles")]
fn cycles() -> usize {
    std::env::var("WHARF_CYCLES").ok().and_then(|it| it.parse().ok()).unwrap_or(1)
}
