//! A secret of the configuration reaches neither the model, nor a client, nor a file.

use super::super::{stderr, stdout};
use super::injection::workspace_with_web;
use scripted_model::{Finish, Reply, ScriptedModel, Step, Wire, text};
use serde_json::Value;
use std::{fs, path::Path};

/// The key of the model, and the token of a server.
const SECRETS: [&str; 2] = ["sk-canary-7f3e9a", "canary-token-51c2"];

/// Modes of output: the last one records and keeps everything.
const MODES: [&[&str]; 4] = [
    &["run", "Hi"],
    &["run", "Hi", "--json"],
    &["run", "Hi", "--events"],
    &["run", "Hi", "--save", "--record", "state/recording.yaml"],
];

#[test]
fn a_secret_in_results_errors_and_answers_stays_secret() {
    for wire in Wire::ALL {
        for mode in MODES {
            // The provider has seen its key, so its model may repeat it, in pieces of any size.
            let echo = [text("Your key is sk-can"), text("ary-7f3e9a"), text(", and canary-token-51c2.")];
            let echo: Vec<Step> = echo.into_iter().chain([Step::End(Finish::Stop), Step::Usage]).collect();
            let model = ScriptedModel::start(vec![
                Reply::calls(wire, &[("c1", "web__leak", "{}"), ("c2", "web__fail", "{}")]),
                Reply::calls(wire, &[("c3", "web__leak", r#"{"like":"sk-canary-7f3e9a"}"#)]),
                Reply::answer(wire, &echo).in_chunks(3),
            ]);
            let workspace = workspace_with_web(wire, &model, "approval: {default: allow}\n", "");
            let output = workspace.wharf(mode);
            assert_eq!(output.status.code(), Some(0), "{wire:?} {mode:?}: {}", stderr(&output));
            let shown = stdout(&output) + &stderr(&output) + &deltas(&stdout(&output));
            assert!(shown.contains("Your key is ***, and ***."), "{wire:?} {mode:?}: {shown}");
            check(&shown, &format!("{wire:?} {mode:?} output"));
            for request in model.requests().iter().take(2) {
                check(&request.body.to_string(), &format!("{wire:?} {mode:?} request"));
            }
            let results = model.requests()[1].body.to_string();
            assert!(
                results.contains("TOKEN=***") && results.contains("cannot use ***"),
                "{wire:?}: {results}"
            );
            assert_eq!(
                workspace.path("state/recording.yaml").exists(),
                mode.contains(&"--record"),
                "{wire:?} {mode:?}"
            );
            check_files(&workspace.path("state"));
            check_files(&workspace.path("home"));
        }
    }
}

#[test]
fn a_secret_in_an_error_of_the_provider_stays_secret() {
    for wire in Wire::ALL {
        for mode in MODES {
            let message = format!("wrong key {}", SECRETS[0]);
            let error = serde_json::json!({ "error": { "message": message } });
            let model = ScriptedModel::start(vec![Reply::error(401, &error)]);
            let workspace = workspace_with_web(wire, &model, "", "");
            let output = workspace.wharf(mode);
            assert_eq!(output.status.code(), Some(2), "{wire:?} {mode:?}");
            let shown = stdout(&output) + &stderr(&output);
            assert!(shown.contains("wrong key ***"), "{wire:?} {mode:?}: {shown}");
            check(&shown, &format!("{wire:?} {mode:?} output"));
            check_files(&workspace.path("state"));
        }
    }
}

#[track_caller]
fn check(text: &str, what: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} contains {secret}: {text}");
    }
}

/// Joins the text of the events, if the output is events.
fn deltas(output: &str) -> String {
    let events = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter_map(|event| Some(event["data"]["delta"].as_str()?.to_owned())).collect()
}

/// Checks every file below a folder.
fn check_files(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            check_files(&path);
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            check(&String::from_utf8_lossy(&bytes), &path.display().to_string());
        }
    }
}
