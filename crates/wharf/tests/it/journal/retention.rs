//! Tests the limits of the journal: calls that are too old or too many are deleted while the gateway runs.

use super::{recorded, search, wait_until};
use crate::serve::server::Server;
use std::{
    fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;
use wharf_store::{CallRow, Location, Store};

const DAY: Duration = Duration::from_secs(86_400);

/// Writes calls of these ages in days to the state folder of a gateway that has not started.
async fn write_calls(folder: &TempDir, ages: &[u32], bytes: usize) {
    let location = Location::Sqlite(folder.path().join("home/wharf.db"));
    let store = Store::open(&location).await.expect("the database opens");
    let call = |(number, age): (usize, &u32)| {
        let began = (SystemTime::now() - DAY * *age).duration_since(UNIX_EPOCH).expect("a time");
        CallRow {
            request_id: format!("{age}-days-{number:04}").into(),
            execution_start: i64::try_from(began.as_micros()).expect("a time"),
            parameters: format!("\"{}\"", "x".repeat(bytes)).into(),
            status: "success".into(),
            ..CallRow::default()
        }
    };
    let calls: Vec<CallRow> = ages.iter().enumerate().map(call).collect();
    store.record_calls(calls).await.expect("they are written");
    store.close().await;
}

fn start(folder: TempDir, settings: &str) -> Server {
    fs::write(folder.path().join("wharf.toml"), settings).expect("settings");
    Server::start_in(folder, &["--settings", "wharf.toml"])
}

#[tokio::test]
async fn calls_older_than_a_month_are_deleted_unless_the_operator_says_otherwise() {
    for (settings, expected) in
        [("", &["1-days-0002", "20-days-0001"][..]), ("[journal]\nkeep = \"10d\"\n", &["1-days-0002"])]
    {
        let folder = TempDir::new().expect("a folder");
        write_calls(&folder, &[40, 20, 1], 10).await;
        let server = start(folder, settings);
        wait_until("old calls are deleted", || recorded(&server) == expected);
    }
    let folder = TempDir::new().expect("a folder");
    write_calls(&folder, &[400], 10).await;
    let server = start(folder, "[journal]\nkeep = \"unlimited\"\nmax_bytes = \"1MiB\"\n");
    // There is no event to wait for. With the other settings, the call would be deleted by now.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(recorded(&server), ["400-days-0000"]);
}

#[tokio::test]
async fn the_oldest_calls_are_deleted_when_there_are_too_many_bytes() {
    let folder = TempDir::new().expect("a folder");
    let ages: Vec<u32> = (1..=20).rev().flat_map(|age| [age; 25]).collect();
    write_calls(&folder, &ages, 8_000).await;
    let server = start(folder, "[journal]\nmax_bytes = \"1MiB\"\n");
    wait_until("the oldest are deleted", || recorded(&server).len() < 200);
    let left = recorded(&server);
    assert!(left.len() > 50, "{left:?}");
    let is_recent =
        |it: &String| it.split('-').next().is_some_and(|age| age.parse::<u32>().is_ok_and(|it| it < 9));
    assert!(left.iter().all(is_recent), "{left:?}");
    assert_eq!(search(&server, 10).0, 200);
}
