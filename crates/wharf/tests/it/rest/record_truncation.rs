//! Tests the journal record of a long call: short values are complete, long ones truncated.

use super::CREATE;
use crate::serve::server::Server;
use serde_json::json;
use std::fs;
use tempfile::TempDir;

#[test]
fn long_values_are_truncated_in_the_journal() {
    let folder = TempDir::new().expect("a folder");
    let settings = folder.path().join("wharf.toml");
    fs::write(&settings, "[calls]\nrecord_limit = 400\n").expect("settings");
    let server = Server::start_in(folder, &["--settings", &settings.display().to_string()]);
    let text = "x".repeat(6_000);
    for (description, is_cut) in [("short", false), (text.as_str(), true)] {
        let body = json!({ "arguments": { "title": "much", "description": description } });
        let (status, called) = server.ask("POST", CREATE, Some(&body));
        assert_eq!((status, &called["success"]), (200, &json!(true)), "{called}");
        let answered = called["structured_content"].to_string();
        assert!(answered.contains(description), "the caller gets the complete result");
        let id = called["request_id"].as_str().expect("an id");
        let (status, kept) = server.ask("GET", &format!("/api/v1/calls/{id}"), None);
        assert_eq!(status, 200, "{kept}");
        if !is_cut {
            assert_eq!(kept["parameters"], body["arguments"]);
            continue;
        }
        for part in [&kept["parameters"]["cut"], &kept["result"]["cut"]] {
            assert!(part["bytes"].as_u64().is_some_and(|it| it > 6_000), "{kept}");
            let beginning = part["beginning"].as_str().unwrap_or_default();
            assert!(beginning.starts_with('{') && beginning.len() == 1_024, "{kept}");
        }
    }
}
