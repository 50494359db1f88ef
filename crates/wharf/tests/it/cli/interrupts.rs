//! Tests the messages to servers and the output when a command is interrupted.

use super::{
    Place, json,
    own_server::{place_with_http_server, place_with_server},
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

async fn wait_for(place: &Place, words: &str) {
    let began = Instant::now();
    while !log(place).contains(words) {
        assert!(began.elapsed() < STEP_TIMEOUT, "{words:?} is not in:\n{}", log(place));
        time::sleep(Duration::from_millis(20)).await;
    }
}

fn log(place: &Place) -> String {
    fs::read_to_string(place.path("log")).unwrap_or_default()
}

/// Starts a call that never gets a response, and sends a signal once the server has the call.
async fn interrupt(place: &Place, signal: &str) -> Output {
    let child: Child = place
        .command(env!("CARGO_BIN_EXE_wharf").as_ref())
        .args(["call", "own__never", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("wharf runs");
    wait_for(place, "\"tools/call\"").await;
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    child.wait_with_output().expect("wharf ends")
}

#[tokio::test]
async fn a_signal_cancels_the_call_and_prints_one_document() {
    for (signal, code, word) in [("-INT", 130, "interrupted"), ("-TERM", 143, "terminated")] {
        let place = place_with_server();
        let output = interrupt(&place, signal).await;
        assert_eq!(output.status.code(), Some(code), "{signal}");
        let report = json(&output);
        assert_eq!((&report["success"], &report["error"]["message"]), (&false.into(), &word.into()));
        assert_eq!(
            (&report["error"]["sent"], &report["metadata"]["tool"]),
            (&"unknown".into(), &"own__never".into())
        );
        wait_for(&place, "notifications/cancelled").await;
    }
}

#[tokio::test]
async fn a_timeout_cancels_the_call_and_prints_one_document() {
    let place = place_with_server();
    let output = place.wharf(&["call", "own__never", "--timeout", "2", "--json"]);
    assert_eq!(output.status.code(), Some(124), "{}", stdout(&output));
    assert_eq!(json(&output)["error"]["type"], "MCPTimeoutError");
    wait_for(&place, "notifications/cancelled").await;
}

#[tokio::test]
async fn a_signal_ends_the_session_of_a_remote_server() {
    let (place, mut server) = place_with_http_server();
    let output = interrupt(&place, "-INT").await;
    assert_eq!(output.status.code(), Some(130));
    wait_for(&place, "DELETE the-session").await;
    server.kill().and_then(|()| server.wait()).expect("the server ends");
}

#[test]
fn the_line_of_progress_goes_away_on_ctrl_c() {
    let place = place_with_server();
    let words = ["call", "own__never"];
    let (shown, code) = terminal::run_and_type(&place, &words, "own runs never", "\x03");
    assert_eq!(code, Some(130), "{shown:?}");
    let (_, after) = shown.rsplit_once("own runs never").expect("a line of progress");
    assert!(after.contains("\x1b[2K"), "{shown:?}");
}
