//! Tests the journal with a full disk and with a blocked database.

use super::{metric, ready, recorded, search, wait_until};
use crate::{
    serve::server::{Server, wharf_after},
    todo::postgres::Postgres,
};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use sqlx::{ConnectOptions, Executor, sqlite::SqliteConnectOptions};
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Maximum file size that simulates a full disk; the log of the test still fits.
const FULL_DISK: u64 = 16 << 10;

/// Number of todos whose list no longer fits.
const TODOS: usize = 15;

/// Limits the size of the program's files, which simulates a full disk. `None` removes the limit.
fn limit_files(server: &Server, bytes: Option<u64>) {
    let pid = Pid::from_child(&server.child);
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(pid), Resource::Fsize, limit).expect("the limit can be set");
}

fn database_file(server: &Server) -> PathBuf {
    server.folder.path().join("home/wharf.db")
}

#[test]
fn calls_lost_on_a_full_disk_are_counted_logged_and_shown() {
    let folder = TempDir::new().expect("a folder");
    // Ignores SIGXFSZ, which would kill the program when a file exceeds the limit.
    let command = wharf_after(&folder, "trap '' XFSZ");
    let server = Server::start_command(folder, command, &[]);
    for _ in 0..TODOS {
        let body = json!({ "arguments": { "title": "milk", "description": "x".repeat(1_000) } });
        let (status, answer) = server.ask("POST", "/api/v1/tools/todo:create_todo/call", Some(&body));
        assert_eq!((status, answer.get("recorded")), (200, None), "{answer}");
    }
    let list = || {
        let body = json!({ "arguments": {} });
        server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&body))
    };
    assert_eq!(ready(&server), (200, json!({ "status": "ready" })));

    limit_files(&server, Some(FULL_DISK));
    for _ in 0..20 {
        let (status, answer) = list();
        assert_eq!((status, &answer["success"], &answer["recorded"]), (200, &json!(true), &json!(false)));
    }
    let wrong = json!({ "arguments": { "title": 7, "description": "x".repeat(2 * TODOS * 1_000) } });
    let (status, problem) = server.ask("POST", "/api/v1/tools/todo:create_todo/call", Some(&wrong));
    assert_eq!((status, &problem["recorded"]), (422, &json!(false)), "{problem}");
    let (status, said) = ready(&server);
    assert_eq!((status, &said["status"], &said["lost"]), (503, &json!("degraded"), &json!(21)), "{said}");
    assert!(said["missing"].as_array().is_some_and(|it| it.contains(&json!("journal"))), "{said}");
    assert_eq!(metric(&server, "wharf_journal_lost_calls_total"), 21);
    let log = server.log_with("calls could not be recorded");
    let lines = log.matches("calls could not be recorded").count();
    assert!((1..10).contains(&lines), "not one line for each call: {log}");

    limit_files(&server, None);
    wait_until("it notices by itself that there is room", || {
        ready(&server) == (200, json!({ "status": "ready", "lost": 21 }))
    });
    let (_, answer) = list();
    assert_eq!((&answer["success"], answer.get("recorded")), (&json!(true), None), "{answer}");
    assert_eq!(recorded(&server).len(), TODOS + 1);
    assert!(server.log().contains("calls are recorded again"), "{}", server.log());
}

#[tokio::test]
async fn calls_do_not_wait_for_a_locked_sqlite() {
    let server = Server::start(&[]);
    let database = SqliteConnectOptions::new().filename(database_file(&server));
    let mut other = database.connect().await.expect("a connection");
    other.execute("BEGIN IMMEDIATE").await.expect("the write lock");
    let mut names: Vec<Value> = Vec::new();
    let mut call = || {
        let (status, answer) = search(&server, 10);
        assert_eq!((status, answer.get("recorded")), (200, None), "{answer}");
        names.push(answer["request_id"].clone());
    };
    call();
    wait_until("it says that the database is missing", || {
        let (status, said) = ready(&server);
        let is_degraded = said["status"] == "degraded" && said["missing"] == json!(["database"]);
        status == 200 && is_degraded && said["waiting"] == 1
    });
    assert_eq!(metric(&server, "wharf_database_up"), 0);
    let begun = Instant::now();
    for _ in 0..3 {
        call();
        let body = json!({ "arguments": { "query": "x" }, "request_id": "mine" });
        let (status, problem) = server.ask("POST", "/api/v1/tools/todo:search_todos/call", Some(&body));
        assert_eq!(status, 503, "whether the name is free cannot be known: {problem}");
        assert_eq!(server.ask("GET", "/api/v1/calls", None).0, 503);
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "they waited {:?}", begun.elapsed());
    other.execute("ROLLBACK").await.expect("it is released");
    wait_until("it is ready again", || ready(&server) == (200, json!({ "status": "ready" })));
    names.reverse();
    assert_eq!(json!(recorded(&server)), json!(names));
    assert_eq!(metric(&server, "wharf_journal_lost_calls_total"), 0);
}

/// Only the first call waits, for one second, until the database counts as blocked.
#[test]
fn calls_do_not_wait_for_a_locked_postgres() {
    let postgres = Postgres::start();
    let server = start_on(&postgres);
    let lock = CallsLock::take(&postgres);
    search(&server, 10);
    let begun = Instant::now();
    for _ in 0..10 {
        let (status, answer) = search(&server, 10);
        assert_eq!((status, answer.get("recorded")), (200, None), "{answer}");
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "they waited {:?}", begun.elapsed());
    let (status, said) = ready(&server);
    assert_eq!((status, &said["status"], &said["waiting"]), (200, &json!("degraded"), &json!(11)), "{said}");
    drop(lock);
    wait_until("it is ready again", || ready(&server) == (200, json!({ "status": "ready" })));
    assert_eq!(recorded(&server).len(), 11);
}

/// With the token from the environment, nothing else creates the state folder, which the spool needs.
#[test]
fn spool_creates_the_state_folder() {
    let postgres = Postgres::start();
    let server = start_on(&postgres);
    assert_eq!(search(&server, 10).0, 200);
    assert_eq!(recorded(&server).len(), 1);
}

/// A client that locks the `calls` table against reads and writes until dropped.
struct CallsLock {
    client: Child,
    stdin: Option<ChildStdin>,
}

impl CallsLock {
    fn take(postgres: &Postgres) -> CallsLock {
        let tools = std::env::var("WHARF_TOOLS").expect("WHARF_TOOLS is set");
        let mut command = Command::new(Path::new(&tools).join("postgres/bin/psql"));
        command.args(["--quiet", "--tuples-only", "--no-psqlrc", &postgres.address()]);
        let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("psql starts");
        let mut stdin = client.stdin.take().expect("a pipe");
        let lock = b"BEGIN; LOCK TABLE calls IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n";
        stdin.write_all(lock).expect("it reads");
        let mut lines = BufReader::new(client.stdout.take().expect("a pipe")).lines();
        assert!(lines.any(|it| it.is_ok_and(|it| it.contains("locked"))), "the table cannot be locked");
        CallsLock { client, stdin: Some(stdin) }
    }
}

impl Drop for CallsLock {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.client.wait();
    }
}

/// Starts a gateway on this database, with a token from the environment and no state folder.
fn start_on(postgres: &Postgres) -> Server {
    let token = "a-token-from-the-environment";
    let folder = TempDir::new().expect("a folder");
    let variables = [("WHARF_TOKEN", token)];
    let mut server = Server::start_with(folder, &["--database", &postgres.address()], &variables);
    token.clone_into(&mut server.token);
    server
}
