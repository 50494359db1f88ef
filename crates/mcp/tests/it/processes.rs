//! Tests servers that are real processes: shell scripts that use no MCP library.

use crate::eras::options;
use std::{
    process::Stdio,
    time::{Duration, Instant},
};
use wharf_mcp::{
    Class, Exit, Failure, Options, Raw, Request, Sent, Session, stdio::Charset, stdio::Command,
    stdio::StopTimeouts,
};

/// Returns a handshake-era server as a shell script; `call` is its reaction to `tools/call`.
fn server(call: &str) -> String {
    format!(
        r#"while read -r line; do
            id=${{line#*\"id\":}}; id=${{id%%,*}}
            case $line in
            *server/discover*) echo "{{\"id\":$id,\"error\":{{\"code\":-32601,\"message\":\"no\"}}}}";;
            *\"initialize\"*) echo "{{\"id\":$id,\"result\":{{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{{}}}}}}";;
            *tools/call*) {call};;
            esac
        done"#
    )
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh", "/");
    command.args = vec!["-c".into(), script.into()];
    command.env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("GREETING".into(), "hello".into())];
    command.stop_timeouts =
        StopTimeouts { after_eof: Duration::from_millis(300), after_term: Duration::from_millis(300) };
    command
}

fn quick() -> Options {
    Options { connect_timeout: Duration::from_secs(3), ..options() }
}

async fn call(command: &Command) -> Result<String, Failure> {
    let connected = Session::connect(command, &quick()).await?;
    let answer = connected.session.request(Request::call_tool("t", None)).await;
    drop(connected.session);
    connected.task.join().await;
    answer.map(|raw| raw.as_str().to_owned())
}

/// Returns whether a process with this command line is left, ignoring zombies.
fn left_running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).replace('\0', " ").trim_end() == marker)
}

#[tokio::test]
async fn left_running_finds_a_running_process() {
    let mut command = tokio::process::Command::new("/bin/sleep");
    let mut child =
        command.arg("987.0").stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    // The command line of a new process appears with a small delay.
    let seen = async {
        while !left_running("/bin/sleep 987.0") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), seen).await.unwrap();
    child.kill().await.unwrap();
    assert!(!left_running("/bin/sleep 987.0"));
}

#[tokio::test]
async fn a_process_is_called_and_stopped() {
    let answer = call(&shell(&server(r#"echo "{\"id\":$id,\"result\":\"$GREETING $HOME\"}""#))).await;
    assert_eq!(answer.unwrap(), "\"hello \"");
}

#[tokio::test]
async fn a_process_that_cannot_start_is_named() {
    let failure = call(&Command::new("/no/such/program", "/")).await.unwrap_err();
    assert_eq!(failure.class, Class::Connect);
    assert_eq!(failure.to_string(), "could not start `/no/such/program`: there is no such program");
}

#[tokio::test]
async fn the_failure_has_exit_code_and_stderr_of_the_process() {
    let begun = Instant::now();
    let failure = call(&shell("echo boom >&2; exit 3")).await.unwrap_err();
    let disconnect = failure.disconnect.clone().unwrap();
    assert_eq!(
        (failure.class, disconnect.exit, disconnect.stderr.as_str()),
        (Class::Closed, Some(Exit::Code(3)), "boom\n")
    );
    assert_eq!(failure.to_string(), "the server ended (exit code 3)");
    assert!(begun.elapsed() < Duration::from_secs(20));

    let failure = call(&shell(&server("echo dying >&2; kill -9 $$"))).await.unwrap_err();
    let disconnect = failure.disconnect.clone().unwrap();
    assert_eq!((disconnect.exit, disconnect.stderr.as_str()), (Some(Exit::Signal(9)), "dying\n"));
}

#[tokio::test]
async fn a_grandchild_that_holds_stdout_does_not_hide_the_end() {
    let begun = Instant::now();
    let failure = call(&shell(&server("sleep 987.1 & exit 4"))).await.unwrap_err();
    assert_eq!(failure.disconnect.clone().unwrap().exit, Some(Exit::Code(4)));
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(!left_running("sleep 987.1"));
}

#[tokio::test]
async fn a_stubborn_process_is_stopped_with_its_group() {
    let script = format!(
        "trap '' TERM; sleep 987.2 & {}; sleep 987.3",
        server("echo \"{\\\"id\\\":$id,\\\"result\\\":1}\"")
    );
    assert_eq!(call(&shell(&script)).await.unwrap(), "1");
    assert!(!left_running("sleep 987.2") && !left_running("sleep 987.3"));
}

#[tokio::test]
async fn a_silent_process_fails_at_the_deadline() {
    let begun = Instant::now();
    let failure = call(&shell("echo 'Ok to proceed? (y)' >&2; sleep 987.4")).await.unwrap_err();
    assert_eq!(failure.class, Class::Timeout);
    assert_eq!(failure.disconnect.clone().unwrap().stderr, "Ok to proceed? (y)\n");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(!left_running("sleep 987.4"));
}

#[tokio::test]
async fn a_stubborn_process_does_not_delay_the_timeout() {
    let mut command = shell("trap '' TERM; echo 'Ok to proceed? (y)' >&2; sleep 987.8; sleep 987.8");
    command.stop_timeouts = StopTimeouts::default();
    let options = Options { connect_timeout: Duration::from_secs(1), ..options() };
    let begun = Instant::now();
    let failure = Session::connect(&command, &options).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_millis(3_900), "{:?}", begun.elapsed());
    assert_eq!((failure.class, failure.sent), (Class::Timeout, Sent::Unknown));
    assert_eq!(failure.disconnect.clone().unwrap().stderr, "Ok to proceed? (y)\n");
    while left_running("sleep 987.8") {
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_process_may_speak_another_encoding() {
    let mut command = shell(&server(r#"printf '{"id":%s,"result":"d\351j\340"}\n' "$id""#));
    command.charset = Charset::named("latin1").unwrap();
    assert_eq!(call(&command).await.unwrap(), "\"déjà\"");
}

#[tokio::test]
async fn a_flood_on_stderr_blocks_nothing() {
    let flood = "head -c 3000000 /dev/zero | tr '\\0' x >&2";
    let answer =
        call(&shell(&server(&format!("{flood}; echo \"{{\\\"id\\\":$id,\\\"result\\\":1}}\"")))).await;
    assert_eq!(answer.unwrap(), "1");
}

#[tokio::test]
async fn a_process_that_breaks_the_protocol_fails_at_once() {
    let mut command = shell(&format!("trap '' TERM; {}; sleep 987.5", server("echo '{'")));
    command.stop_timeouts =
        StopTimeouts { after_eof: Duration::from_secs(2), after_term: Duration::from_millis(300) };
    let connected = Session::connect(&command, &quick()).await.unwrap();
    let begun = Instant::now();
    let failure = connected.session.request(Request::call_tool("t", None)).await.unwrap_err();
    assert_eq!(failure.class, Class::Protocol);
    assert!(begun.elapsed() < Duration::from_millis(1_900), "{:?}", begun.elapsed());
    drop(connected.session);
    connected.task.join().await;
    assert!(!left_running("sleep 987.5"));
}

#[tokio::test]
async fn a_process_that_closes_its_stdin_fails_at_once_and_was_not_called() {
    let begun = Instant::now();
    let command = shell(&server("exec 0<&-; sleep 987.6"));
    let connected = Session::connect(&command, &quick()).await.unwrap();
    let first = connected.session.request(Request::call_tool("t", None));
    let second = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        connected.session.request(Request::call_tool("t", None)).await
    };
    let (first, second) = tokio::join!(first, second);
    let (first, second) = (first.unwrap_err(), second.unwrap_err());
    assert_eq!((first.sent, second.sent), (Sent::Unknown, Sent::No));
    assert_eq!(second.to_string(), "the server closed its stdin");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_last_answer_without_a_newline_counts() {
    let answer = call(&shell(&server(r#"printf '{"id":%s,"result":1}' "$id"; exit"#))).await;
    assert_eq!(answer.unwrap(), "1");
}

#[tokio::test]
async fn a_process_that_stops_reading_times_out() {
    let command = shell(&server("sleep 987.7"));
    let connected = Session::connect(&command, &quick()).await.unwrap();
    let arguments = Raw::from(serde_json::json!({ "text": "x".repeat(1 << 20) }));
    let calls = (0..100).map(|_| {
        let deadline = tokio::time::Instant::now() + Duration::from_millis(500);
        connected.session.request(Request::call_tool("t", Some(&arguments)).deadline(deadline))
    });
    let begun = Instant::now();
    for outcome in futures_util::future::join_all(calls).await {
        assert_eq!(outcome.unwrap_err().class, Class::Timeout);
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(connected.session);
    connected.task.join().await;
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(!left_running("sleep 987.7"));
}
