//! Tests that the supervisor between the program and a server is invisible to both.

use super::sandbox::Sandbox;
use rustix::process::Signal;
use std::fs;

#[tokio::test]
async fn start_error_names_the_program() {
    let said = Sandbox::with("/no/such/program", &[]).wharf("tools").await;
    said.check("could not start `/no/such/program`: there is no such program");
    let said = Sandbox::with("/dev/null", &[]).wharf("tools").await;
    said.check("could not start `/dev/null`: Permission denied");
}

#[tokio::test]
async fn exit_code_and_signal_of_a_server_are_reported() {
    let said = Sandbox::new("exits-3").wharf("tools").await;
    said.check("exit code 3");
    said.check("no more");
    Sandbox::new("dies-of-9").wharf("tools").await.check("signal 9");
}

#[tokio::test]
async fn a_server_sees_only_what_it_may_see() {
    let sandbox = Sandbox::new("dumps");
    sandbox.wharf_with_open_descriptor("call answer").await.check("ahoy");
    let dump = fs::read_to_string(sandbox.path("dump")).expect("the dump");
    check_descriptors(&dump);
    check_place(&dump, &sandbox);
    check_environment(&dump);
}

/// Checks that the server has three pipes and no other descriptor, except the folder it lists.
fn check_descriptors(dump: &str) {
    let lines = dump.lines().filter_map(|it| it.strip_prefix("fd "));
    let found: Vec<&str> = lines.filter(|it| !it.ends_with("/fd")).collect();
    let kinds: Vec<&str> = found.iter().filter_map(|it| it.split('[').next()).collect();
    assert_eq!(kinds, ["0 pipe:", "1 pipe:", "2 pipe:"], "{found:?}");
}

fn check_place(dump: &str, sandbox: &Sandbox) {
    let place = dump.lines().find_map(|it| it.strip_prefix("cwd ")).expect("a place");
    let private = format!("{}/wharf-", sandbox.path("state/scratch").display());
    assert!(place.starts_with(&private) && place.ends_with(" 700 []"), "{place}");
}

fn check_environment(dump: &str) {
    let of_others = |line: &&str| line.starts_with("fd ") || line.starts_with("cwd ");
    let mut names: Vec<&str> =
        dump.lines().filter(|it| !of_others(it)).filter_map(|it| Some(it.split_once('=')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "PATH", "SANDBOX", "TMPDIR"], "{dump}");
}

/// Covers `pkill wharf` (SIGTERM) and the kernel's out-of-memory killer (SIGKILL).
#[tokio::test]
async fn killed_supervisor_takes_its_server_along() {
    for (shape, count, signal) in
        [("setsid-ignores-term", 3, Signal::TERM), ("holds-stdout", 3, Signal::KILL)]
    {
        let sandbox = Sandbox::new(shape);
        let mut program = sandbox.start("call silence");
        sandbox.wait_for_processes(count).await;
        sandbox.wait_for_call().await;
        sandbox.signal_supervisor(signal);
        assert_eq!(program.ended().await, Some(69), "{shape}");
        sandbox.wait_for_no_processes().await;
    }
}

#[tokio::test]
async fn a_container_is_removed_by_its_name() {
    let sandbox = Sandbox::with_fake_docker();
    sandbox.wharf("call answer").await.check("ahoy");
    let mut program = sandbox.start("call silence");
    sandbox.wait_for_processes(2).await;
    program.end(Signal::KILL).await;
    sandbox.wait_for_no_processes().await;
    let orders = fs::read_to_string(sandbox.path("orders")).expect("orders");
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
async fn folders_of_a_killed_host_are_removed() {
    let sandbox = Sandbox::new("direct");
    let mut other = sandbox.start("call silence");
    sandbox.wait_for_processes(2).await;
    let used = sandbox.folders();
    let mut killed = sandbox.start("call silence");
    sandbox.wait_for_processes(4).await;
    killed.end(Signal::KILL).await;
    sandbox.wait_for_at_most(2).await;
    assert_eq!((used.len(), sandbox.folders().len()), (1, 2));
    sandbox.wharf("call answer").await.check("ahoy");
    assert_eq!(sandbox.folders(), used);
    other.end(Signal::TERM).await;
    sandbox.wait_for_no_processes().await;
}
