//! Tests that a server process sees only the environment and files it was given.

use crate::trial::{OURS, try_all};
use hostile::{matrix::find, probe::Mark};
use serde_json::Value;

#[tokio::test]
async fn a_server_sees_only_what_it_is_given() {
    let row = find("env_dump/stdio/legacy").expect("the row");
    let tried = try_all(OURS, vec![row]).await;
    let said = &tried[0].1.said;
    let (_, seen) = said.split_once('\n').expect("the nonce, then what it sees");
    let seen: Value = serde_json::from_str(seen).expect("JSON");
    let names: Vec<&str> = seen["env"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    // Cargo started this process with many variables that servers must not see.
    assert!(names.contains(&Mark::NAME) && !names.iter().any(|it| it.starts_with("CARGO")), "{names:?}");
    let files: Vec<&str> =
        seen["files"].as_array().expect("files").iter().filter_map(Value::as_str).collect();
    // The action log is the server's own file.
    assert!(files.iter().all(|it| it.ends_with("/ledger")), "{files:?}");
    let folder = seen["folder"].as_str().expect("a folder");
    assert!(folder.contains("/scratch/wharf-"), "{folder}");
}
