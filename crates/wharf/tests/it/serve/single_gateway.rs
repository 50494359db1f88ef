//! Tests that a second gateway on the same SQLite database is refused with a message that names the first, because
//! they could not notify each other.

use super::server::{Server, wharf};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Timeout for the refusal of a second gateway.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a second gateway, which must be refused, and returns its output.
fn second(folder: &TempDir, listen: &str, home: &str, words: &[&str]) -> Output {
    let mut command = wharf(folder);
    command.env("WHARF_HOME", folder.path().join(home)).args(["serve", "--listen", listen]).args(words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let begun = Instant::now();
    while child.try_wait().expect("it can be waited for").is_none() {
        if begun.elapsed() > REFUSAL_TIMEOUT {
            child.kill().expect("it runs");
            panic!("a second gateway serves");
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("it has ended")
}

#[track_caller]
fn is_refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}

#[test]
fn a_second_gateway_on_a_state_folder_is_refused() {
    let server = Server::start(&[]);
    let home = server.folder.path().join("home");
    let (pid, url) = (format!("process {}", server.child.id()), format!("http://{}", server.address));
    let words: &[&str] =
        &["error: the state folder", &home.display().to_string(), &pid, &url, "WHARF_HOME", "PostgreSQL"];
    is_refused(&second(&server.folder, "127.0.0.1:0", "home", &[]), words);
    // The check comes before the port is opened, which would fail with another error.
    is_refused(&second(&server.folder, &server.address, "home", &[]), words);
    assert_eq!(server.ask_with("GET", "/health", &[], None).0, 200, "the first notices nothing");
}

#[test]
fn a_second_gateway_on_a_named_database_is_refused() {
    let server = Server::start(&["--database", "sqlite:named.db"]);
    let named = ["--database", "sqlite:named.db"];
    let refused = second(&server.folder, "127.0.0.1:0", "another-home", &named);
    is_refused(&refused, &["error: the database `named.db` is in use", &server.address]);
}

#[test]
fn a_running_gateway_is_found_by_its_state_folder_until_it_ends() {
    let mut server = Server::start(&[]);
    let file = server.folder.path().join("home/gateway.json");
    let found: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    assert_eq!(found["url"], format!("http://{}", server.address));
    assert_eq!(found["pid"], server.child.id());
    let agent_file = server.folder.path().canonicalize().expect("a path").join("agent.yaml");
    assert_eq!(found["agent_file"], agent_file.display().to_string());
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let list = |folder: &TempDir| wharf(folder).args(["sources", "list"]).output().expect("it runs");
    let listed = list(&server.folder);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("todo"), "{listed:?}");

    server.child.kill().expect("it runs");
    let folder = server.into_folder();
    assert!(file.exists(), "a killed one cannot remove it");
    let listed = list(&folder);
    assert!(
        !String::from_utf8_lossy(&listed.stderr).contains(found["url"].as_str().expect("text")),
        "{listed:?}"
    );
    // The leftover file of a killed gateway does not prevent a start.
    let server = Server::start_in(folder, &[]);
    let file = server.folder.path().join("home/gateway.json");
    // Waits for a response, because by then the gateway also handles signals.
    assert_eq!(server.ask_with("GET", "/health", &[], None).0, 200);
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let _folder = server.into_folder();
    assert!(!file.exists(), "one that ends removes it");
}
