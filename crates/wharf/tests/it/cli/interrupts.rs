//! Tests the messages to servers and the output when a command is interrupted.

use super::{
    CliWorkspace, json,
    scripted_server::{workspace_with_http_server, workspace_with_server},
    stdout, terminal,
};
use std::{
    fs,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};
use tokio::time;

/// Timeout for each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

async fn wait_for(workspace: &CliWorkspace, words: &str) {
    let began = Instant::now();
    while !log(workspace).contains(words) {
        assert!(began.elapsed() < STEP_TIMEOUT, "{words:?} is not in:\n{}", log(workspace));
        time::sleep(Duration::from_millis(20)).await;
    }
}

fn log(workspace: &CliWorkspace) -> String {
    fs::read_to_string(workspace.path("log")).unwrap_or_default()
}

/// Starts a call that never gets a response, and sends a signal once the server has the call.
async fn interrupt(workspace: &CliWorkspace, signal: &str) -> Output {
    let child: Child = workspace
        .command(env!("CARGO_BIN_EXE_wharf").as_ref())
        .args(["call", "own__never", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("wharf runs");
    wait_for(workspace, "\"tools/call\"").await;
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    child.wait_with_output().expect("wharf ends")
}

#[tokio::test]
async fn a_signal_cancels_the_call_and_prints_one_document() {
    for (signal, code, word) in [("-INT", 130, "interrupted"), ("-TERM", 143, "terminated")] {
        let workspace = workspace_with_server();
        let output = interrupt(&workspace, signal).await;
        assert_eq!(output.status.code(), Some(code), "{signal}");
        let report = json(&output);
        assert_eq!((&report["success"], &report["error"]["message"]), (&false.into(), &word.into()));
        assert_eq!(
            (&report["error"]["sent"], &report["metadata"]["tool"]),
            (&"unknown".into(), &"own__never".into())
        );
        wait_for(&workspace, "notifications/cancelled").await;
    }
}

#[tokio::test]
async fn a_timeout_cancels_the_call_and_prints_one_document() {
    let workspace = workspace_with_server();
    let output = workspace.wharf(&["call", "own__never", "--timeout", "2", "--json"]);
    assert_eq!(output.status.code(), Some(124), "{}", stdout(&output));
    assert_eq!(json(&output)["error"]["type"], "MCPTimeoutError");
    wait_for(&workspace, "notifications/cancelled").await;
}

#[tokio::test]
async fn a_signal_ends_the_session_of_a_remote_server() {
    let (workspace, mut server) = workspace_with_http_server();
    let output = interrupt(&workspace, "-INT").await;
    assert_eq!(output.status.code(), Some(130));
    wait_for(&workspace, "DELETE the-session").await;
    server.kill().and_then(|()| server.wait()).expect("the server ends");
}

#[test]
fn progress_line_is_cleared_on_ctrl_c() {
    let workspace = workspace_with_server();
    let words = ["call", "own__never"];
    let (shown, code) = terminal::run_and_type(&workspace, &words, "own runs never", "\x03");
    assert_eq!(code, Some(130), "{shown:?}");
    let (_, after) = shown.rsplit_once("own runs never").expect("a line of progress");
    assert!(after.contains("\x1b[2K"), "{shown:?}");
}
