//! Tests how many server processes exist, and when.

use super::rig::{Entry, Rig, call, observed_by};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    runtime,
    task::JoinSet,
    time::{self, Instant},
};
use wharf_runtime::{Event, EventKind, Handle, Observer, RuntimeOptions};

/// Makes the server write its action log to the folder of the rig.
const ACTION_LOG: &str = "--ledger $FOLDER/ledger";

/// Returns the ids of the processes that executed a call.
fn workers(rig: &Rig) -> BTreeSet<String> {
    let action_log = fs::read_to_string(rig.folder.path().join("ledger")).unwrap_or_default();
    let done = action_log.lines().filter(|it| it.starts_with("exec "));
    done.filter_map(|it| it.split(' ').nth(2)).map(str::to_owned).collect()
}

fn tasks() -> usize {
    runtime::Handle::current().metrics().num_alive_tasks()
}

/// Returns the number of tasks beyond `before`. Retries, because a joined task is counted for a moment longer.
async fn tasks_beyond(before: usize) -> usize {
    for _ in 0..100 {
        if tasks() == before {
            break;
        }
        time::sleep(Duration::from_millis(10)).await;
    }
    tasks() - before
}

async fn call_concurrently(handle: &Handle, tool: &'static str, count: usize) -> BTreeMap<String, usize> {
    let mut calls = JoinSet::new();
    for number in 0..count {
        let handle = handle.clone();
        calls.spawn(async move {
            let nonce = format!("n{number}");
            let outcome = call(&handle, tool, &nonce).await;
            if outcome == format!("ok {nonce}") { "ok".to_owned() } else { outcome }
        });
    }
    let mut tally = BTreeMap::new();
    for outcome in calls.join_all().await {
        *tally.entry(outcome).or_default() += 1;
    }
    tally
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_first_calls_start_one_process() {
    let keys = "load_tools: false, load_prompts: false";
    let line = format!("{ACTION_LOG} --mode slow_start --delay 250");
    let rig = Rig::start(&[Entry::Stdio("it", &line, keys)], RuntimeOptions::default());
    assert_eq!(
        call_concurrently(&rig.handle, "it__echo", 1_000).await,
        BTreeMap::from([("ok".to_owned(), 1_000)])
    );
    assert_eq!(workers(&rig).len(), 1);
    assert_eq!(rig.handle.sources()[0].status.sessions, 1);
    rig.runtime.shutdown(Duration::ZERO).await;
    assert_eq!(rig.mark.leftovers().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transient_server_lives_for_one_call() {
    let rig =
        Rig::start(&[Entry::Stdio("it", ACTION_LOG, "lifecycle: transient")], RuntimeOptions::default());
    assert_eq!(call_concurrently(&rig.handle, "it__echo", 8).await, BTreeMap::from([("ok".to_owned(), 8)]));
    assert_eq!(workers(&rig).len(), 8);
    assert_eq!(rig.mark.leftovers().await, 0, "before anybody shuts anything down");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_with_a_thousand_pending_calls_leaves_nothing() {
    let before = tasks();
    let line = format!("{ACTION_LOG} --mode silent");
    let rig = Rig::start(
        &[Entry::Stdio("it", &line, ""), Entry::Stdio("other", "", "")],
        RuntimeOptions::default(),
    );
    rig.handle.settled().await;
    let handle = rig.handle.clone();
    let mut calls = JoinSet::new();
    calls.spawn(async move { call_concurrently(&handle, "it__echo", 1_000).await });
    while rig.handle.sources()[0].unanswered < 1_000 {
        time::sleep(Duration::from_millis(5)).await;
    }
    let begun = Instant::now();
    let grace = Duration::from_secs(1);
    rig.runtime.shutdown(grace).await;
    let took = begun.elapsed();
    assert!((grace..grace + Duration::from_secs(5)).contains(&took), "{took:?}");
    let tally = calls.join_all().await.remove(0);
    assert_eq!(tally, BTreeMap::from([("MCPError call unknown".to_owned(), 1_000)]));
    assert_eq!(rig.mark.leftovers().await, 0);
    assert_eq!(tasks_beyond(before).await, 0);
}

/// Covers servers that are still starting: a slow one, one that never responds, and one for a single call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_while_servers_start_leaves_nothing() {
    let before = tasks();
    let rig = Rig::start(
        &[
            Entry::Stdio("slow", "--mode slow_start --delay 60000", ""),
            Entry::Stdio("mute", "--mode init_silent --era legacy", ""),
            Entry::Stdio("brief", "--mode init_silent --era legacy", "lifecycle: transient"),
        ],
        RuntimeOptions::default(),
    );
    while !rig.handle.sources().iter().all(|it| it.status.pid.is_some()) {
        time::sleep(Duration::from_millis(5)).await;
    }
    rig.runtime.shutdown(Duration::ZERO).await;
    assert_eq!(tasks_beyond(before).await, 0);
    assert_eq!(rig.mark.leftovers().await, 0);
}

#[derive(Default)]
struct RecordingObserver(Mutex<Vec<String>>);

impl Observer for RecordingObserver {
    fn on_event(&self, event: &Event) {
        let said = match &event.what {
            EventKind::Stderr(line) => format!("stderr {line}"),
            EventKind::Log { level, data, .. } => format!("log {level} {}", data.as_str()),
            EventKind::Progress { progress, .. } => format!("progress {}", progress.progress),
            EventKind::Exception(how) => format!("exception {how}"),
            EventKind::Called(record) => format!("call {}", record.status().as_str()),
            _ => return,
        };
        self.0.lock().expect("nobody panics with it").push(said);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_receives_output_and_exit_of_a_process() {
    let observer = Arc::new(RecordingObserver::default());
    let rig = Rig::start(
        &[Entry::Stdio("talks", "--mode talkative", ""), Entry::Stdio("dies", "--mode kill_mid_call", "")],
        observed_by(observer.clone()),
    );
    assert_eq!(rig.call("talks__echo", "n").await, "ok n");
    assert_eq!(rig.call("dies__echo", "n").await, "MCPConnectionError call unknown");
    rig.runtime.shutdown(Duration::ZERO).await;
    let heard = observer.0.lock().expect("nobody panics with it").clone();
    let position_of = |said: &str| {
        heard.iter().position(|it| it == said).unwrap_or_else(|| panic!("no `{said}` in {heard:?}"))
    };
    assert!(position_of("progress 1") < position_of("call success"));
    position_of("log warning \"careful\"");
    position_of("stderr a line on stderr");
    position_of("exception the server ended (signal 9)");
    position_of("call failure");
    assert_eq!(rig.mark.leftovers().await, 0);
}
