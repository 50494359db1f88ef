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
use wharf_runtime::{Event, Handle, Happening, Observer, Tuning};

/// Makes the server write its ledger to the folder of the rig.
const LEDGER: &str = "--ledger $FOLDER/ledger";

/// Returns the ids of the processes that executed a call.
fn workers(rig: &Rig) -> BTreeSet<String> {
    let ledger = fs::read_to_string(rig.folder.path().join("ledger")).unwrap_or_default();
    let done = ledger.lines().filter(|it| it.starts_with("exec "));
    done.filter_map(|it| it.split(' ').nth(2)).map(str::to_owned).collect()
}

fn tasks() -> usize {
    runtime::Handle::current().metrics().num_alive_tasks()
}

/// Returns the number of tasks beyond `before`. Retries, because a joined task is counted for a moment longer.
async fn left_of(before: usize) -> usize {
    for _ in 0..100 {
        if tasks() == before {
            break;
        }
        time::sleep(Duration::from_millis(10)).await;
    }
    tasks() - before
}

async fn at_once(handle: &Handle, tool: &'static str, count: usize) -> BTreeMap<String, usize> {
    let mut calls = JoinSet::new();
    for number in 0..count {
        let handle = handle.clone();
        calls.spawn(async move {
            let nonce = format!("n{number}");
            let told = call(&handle, tool, &nonce).await;
            if told == format!("ok {nonce}") { "ok".to_owned() } else { told }
        });
    }
    let mut tally = BTreeMap::new();
    for told in calls.join_all().await {
        *tally.entry(told).or_default() += 1;
    }
    tally
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_first_calls_start_one_process() {
    let keys = "load_tools: false, load_prompts: false";
    let line = format!("{LEDGER} --mode slow_start --delay 250");
    let rig = Rig::start(&[Entry::Stdio("it", &line, keys)], Tuning::default());
    assert_eq!(at_once(&rig.handle, "it__echo", 1_000).await, BTreeMap::from([("ok".to_owned(), 1_000)]));
    assert_eq!(workers(&rig).len(), 1);
    assert_eq!(rig.handle.sources()[0].standing.sessions, 1);
    rig.runtime.shutdown(Duration::ZERO).await;
    assert_eq!(rig.mark.leftovers().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transient_server_lives_for_one_call() {
    let rig = Rig::start(&[Entry::Stdio("it", LEDGER, "lifecycle: transient")], Tuning::default());
    assert_eq!(at_once(&rig.handle, "it__echo", 8).await, BTreeMap::from([("ok".to_owned(), 8)]));
    assert_eq!(workers(&rig).len(), 8);
    assert_eq!(rig.mark.leftovers().await, 0, "before anybody shuts anything down");
    rig.runtime.shutdown(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_when_a_runtime_is_shut_down_with_a_thousand_calls_out() {
    let before = tasks();
    let line = format!("{LEDGER} --mode silent");
    let rig = Rig::start(&[Entry::Stdio("it", &line, ""), Entry::Stdio("other", "", "")], Tuning::default());
    rig.handle.settled().await;
    let handle = rig.handle.clone();
    let mut calls = JoinSet::new();
    calls.spawn(async move { at_once(&handle, "it__echo", 1_000).await });
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
    assert_eq!(left_of(before).await, 0);
}

/// Covers servers that are still starting: a slow one, one that never responds, and one for a single call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_when_a_runtime_is_shut_down_while_servers_start() {
    let before = tasks();
    let rig = Rig::start(
        &[
            Entry::Stdio("slow", "--mode slow_start --delay 60000", ""),
            Entry::Stdio("mute", "--mode init_silent --era legacy", ""),
            Entry::Stdio("brief", "--mode init_silent --era legacy", "lifecycle: transient"),
        ],
        Tuning::default(),
    );
    while !rig.handle.sources().iter().all(|it| it.standing.pid.is_some()) {
        time::sleep(Duration::from_millis(5)).await;
    }
    rig.runtime.shutdown(Duration::ZERO).await;
    assert_eq!(left_of(before).await, 0);
    assert_eq!(rig.mark.leftovers().await, 0);
}

#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl Observer for Ear {
    fn heard(&self, event: &Event) {
        let said = match &event.what {
            Happening::Stderr(line) => format!("stderr {line}"),
            Happening::Log { level, data, .. } => format!("log {level} {}", data.as_str()),
            Happening::Progress { progress, .. } => format!("progress {}", progress.progress),
            Happening::Exception(how) => format!("exception {how}"),
            Happening::Called(record) => format!("call {}", record.status().as_str()),
            _ => return,
        };
        self.0.lock().expect("nobody panics with it").push(said);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_hears_what_a_process_says_and_how_it_ends() {
    let ear = Arc::new(Ear::default());
    let rig = Rig::start(
        &[Entry::Stdio("talks", "--mode talkative", ""), Entry::Stdio("dies", "--mode kill_mid_call", "")],
        observed_by(ear.clone()),
    );
    assert_eq!(rig.call("talks__echo", "n").await, "ok n");
    assert_eq!(rig.call("dies__echo", "n").await, "MCPConnectionError call unknown");
    rig.runtime.shutdown(Duration::ZERO).await;
    let heard = ear.0.lock().expect("nobody panics with it").clone();
    let place = |said: &str| {
        heard.iter().position(|it| it == said).unwrap_or_else(|| panic!("no `{said}` in {heard:?}"))
    };
    assert!(place("progress 1") < place("call success"));
    place("log warning \"careful\"");
    place("stderr a line on stderr");
    place("exception the server ended (signal 9)");
    place("call failure");
    assert_eq!(rig.mark.leftovers().await, 0);
}
