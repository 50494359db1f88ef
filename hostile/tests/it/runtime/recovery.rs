//! Tests a dead server and a killed server beside an unaffected one.

use super::rig::{Entry, Rig, call};
use rustix::process::{Pid, Signal, kill_process};
use std::{collections::BTreeMap, time::Duration};
use tokio::{task::JoinSet, time};
use wharf_runtime::{Handle, RuntimeOptions};

/// Timeout for each step; nothing may hang.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_and_a_killed_server_do_not_affect_others() {
    let rig = Rig::start(
        &[
            Entry::Stdio("good", "", ""),
            Entry::Stdio("dead", "--mode exit_now", ""),
            Entry::Stdio("victim", "", ""),
        ],
        RuntimeOptions::default(),
    );
    let mut calls = JoinSet::new();
    for source in ["good", "victim"] {
        for _ in 0..200 {
            let handle = rig.handle.clone();
            calls.spawn(async move { (source, call(&handle, &format!("{source}__echo"), "n").await) });
        }
        calls.spawn({
            let handle = rig.handle.clone();
            async move { ("dead", call(&handle, "dead__echo", "n").await) }
        });
    }
    let before = time::timeout(STEP_TIMEOUT, tally(calls)).await.expect("nothing hangs");
    let expected = [("dead MCPConnectionError handshake no", 2), ("good ok n", 200), ("victim ok n", 200)];
    assert_eq!(before, expected.map(|(outcome, count)| (outcome.to_owned(), count)).into());

    kill(&rig.handle, "victim");
    let after = time::timeout(STEP_TIMEOUT, async {
        let mut outcome = Vec::new();
        for number in 0..100 {
            let nonce = number.to_string();
            assert_eq!(rig.call("good__echo", &nonce).await, format!("ok {nonce}"));
            outcome.push(rig.call("victim__echo", &nonce).await == format!("ok {nonce}"));
        }
        outcome
    });
    let after = after.await.expect("nothing hangs");
    // The first call may have been written to the pipe of a dead process. Every later one succeeds.
    assert!(after[1..].iter().all(|it| *it), "{after:?}");
    rig.runtime.shutdown(Duration::from_secs(1)).await;
    assert_eq!(rig.mark.leftovers().await, 0);
}

/// A call after the server's exit is noticed gets a new server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_between_calls_is_restarted() {
    let rig = Rig::start(&[Entry::Stdio("it", "", "")], RuntimeOptions::default());
    for round in 0..20 {
        let nonce = round.to_string();
        assert_eq!(rig.call("it__echo", &nonce).await, format!("ok {nonce}"));
        let mut events = rig.handle.events();
        kill(&rig.handle, "it");
        while let Some(event) = events.next().await {
            if event.what.as_str() == "session" {
                break;
            }
        }
    }
    assert_eq!(rig.handle.sources()[0].status.sessions, 20);
    rig.runtime.shutdown(Duration::from_secs(1)).await;
    assert_eq!(rig.mark.leftovers().await, 0);
}

fn kill(handle: &Handle, source: &str) {
    let state = handle.sources().into_iter().find(|it| it.source.name.expose() == source).expect("a source");
    let pid = state.status.pid.and_then(|it| Pid::from_raw(it as i32)).expect("a process");
    kill_process(pid, Signal::KILL).expect("it can be killed");
}

async fn tally(calls: JoinSet<(&'static str, String)>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for (source, outcome) in calls.join_all().await {
        *tally.entry(format!("{source} {outcome}")).or_default() += 1;
    }
    tally
}
