//! Tests that the supervisor between the program and a server is invisible to both.

use super::berth::Berth;
use rustix::process::Signal;
use std::fs;

#[tokio::test]
async fn a_server_that_cannot_start_is_named() {
    let said = Berth::with("/no/such/program", &[]).wharf("tools").await;
    said.check("could not start `/no/such/program`: there is no such program");
    let said = Berth::with("/dev/null", &[]).wharf("tools").await;
    said.check("could not start `/dev/null`: Permission denied");
}

#[tokio::test]
async fn how_a_server_ended_is_told() {
    let said = Berth::new("exits-3").wharf("tools").await;
    said.check("exit code 3");
    said.check("no more");
    Berth::new("dies-of-9").wharf("tools").await.check("signal 9");
}

#[tokio::test]
async fn a_server_sees_only_what_it_may_see() {
    let berth = Berth::new("dumps");
    berth.careless_wharf("call answer").await.check("ahoy");
    let dump = fs::read_to_string(berth.path("dump")).expect("the dump");
    check_descriptors(&dump);
    check_place(&dump, &berth);
    check_environment(&dump);
}

/// Checks that the server has three pipes and no other descriptor, except the folder it lists.
fn check_descriptors(dump: &str) {
    let lines = dump.lines().filter_map(|it| it.strip_prefix("fd "));
    let found: Vec<&str> = lines.filter(|it| !it.ends_with("/fd")).collect();
    let kinds: Vec<&str> = found.iter().filter_map(|it| it.split('[').next()).collect();
    assert_eq!(kinds, ["0 pipe:", "1 pipe:", "2 pipe:"], "{found:?}");
}

fn check_place(dump: &str, berth: &Berth) {
    let place = dump.lines().find_map(|it| it.strip_prefix("cwd ")).expect("a place");
    let private = format!("{}/wharf-", berth.path("state/scratch").display());
    assert!(place.starts_with(&private) && place.ends_with(" 700 []"), "{place}");
}

fn check_environment(dump: &str) {
    let of_others = |line: &&str| line.starts_with("fd ") || line.starts_with("cwd ");
    let mut names: Vec<&str> =
        dump.lines().filter(|it| !of_others(it)).filter_map(|it| Some(it.split_once('=')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["BERTH", "HOME", "PATH", "TMPDIR"], "{dump}");
}

/// Covers `pkill wharf` (SIGTERM) and the kernel's out-of-memory killer (SIGKILL).
#[tokio::test]
async fn a_supervisor_that_is_ended_takes_its_server_along() {
    for (shape, count, signal) in
        [("setsid-ignores-term", 3, Signal::TERM), ("holds-stdout", 3, Signal::KILL)]
    {
        let berth = Berth::new(shape);
        let mut program = berth.start("call silence");
        berth.until_running(count).await;
        berth.until_asked().await;
        berth.signal_supervisor(signal);
        assert_eq!(program.ended().await, Some(69), "{shape}");
        berth.until_deserted().await;
    }
}

#[tokio::test]
async fn a_container_is_removed_by_its_name() {
    let berth = Berth::docked();
    berth.wharf("call answer").await.check("ahoy");
    let mut program = berth.start("call silence");
    berth.until_running(2).await;
    program.end(Signal::KILL).await;
    berth.until_deserted().await;
    let orders = fs::read_to_string(berth.path("orders")).expect("orders");
    let orders: Vec<Vec<&str>> = orders.lines().map(|it| it.split(' ').collect()).collect();
    // Before the first start, wharf asks docker whether the image exists.
    let orders: Vec<Vec<&str>> = orders.into_iter().filter(|it| it[0] != "image").collect();
    let [one, gone, other, also_gone] = &orders[..] else { panic!("{orders:?}") };
    assert_ne!(one[2], other[2]);
    for (run, gone) in [(one, gone), (other, also_gone)] {
        assert_eq!((&run[..2], &run[2][..6]), (&["run", "--name"][..], "wharf-"));
        assert_eq!(gone[..], ["rm", "--force", run[2]]);
    }
}

/// The next start removes the working directories of a killed host, but not those that another host uses.
#[tokio::test]
async fn the_folders_of_a_killed_host_are_swept() {
    let berth = Berth::new("direct");
    let mut other = berth.start("call silence");
    berth.until_running(2).await;
    let used = berth.folders();
    let mut killed = berth.start("call silence");
    berth.until_running(4).await;
    killed.end(Signal::KILL).await;
    berth.until_running_only(2).await;
    assert_eq!((used.len(), berth.folders().len()), (1, 2));
    berth.wharf("call answer").await.check("ahoy");
    assert_eq!(berth.folders(), used);
    other.end(Signal::TERM).await;
    berth.until_deserted().await;
}
