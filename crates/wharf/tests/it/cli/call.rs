//! Tests `wharf call`: how arguments reach the tool.

#[cfg(unix)]
use super::scripted_server::workspace_with_server;
use super::{CliWorkspace, TODO, json, stderr, stdout};

#[test]
fn values_are_converted_by_the_schema_of_the_tool() {
    let workspace = CliWorkspace::with(TODO);
    let output = workspace.wharf(&["call", "create_todo", "title=2", "priority=2", "tags=a,b", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let todo = &json(&output)["metadata"]["structured_content"];
    assert_eq!((&todo["title"], &todo["priority"]), (&"2".into(), &2.into()));
    assert_eq!(todo["tags"], serde_json::json!(["a", "b"]));
    let output = workspace.wharf(&["call", "create_todo", "title=x", "tags=a", "tags=b", "--json"]);
    assert_eq!(json(&output)["metadata"]["structured_content"]["tags"], serde_json::json!(["a", "b"]));
    // The tool also accepts this name for the argument.
    assert_eq!(workspace.wharf(&["call", "delete_todo", "id=1"]).status.code(), Some(0));
}

#[test]
fn type_mismatch_is_explained() {
    let workspace = CliWorkspace::with(TODO);
    for (words, message, hint) in [
        (
            &["title=x", "priority=high"][..],
            "error: 'high' does not fit `priority`: expected a whole number from 1 to 5\n",
            "help: for example priority:=2 ",
        ),
        (&["titel=x"], "error: `create_todo` has no argument `titel`\n", "help: did you mean `title`?\n"),
        (&["title=x", "title=y"], "error: the argument `title` is given twice\n", "help: only a list"),
    ] {
        let all: Vec<&str> = ["call", "create_todo"].iter().chain(words).copied().collect();
        let output = workspace.wharf(&all);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message) && said.contains(hint), "{said}");
        let report = json(&workspace.wharf(&[&all[..], &["--json"]].concat()));
        assert_eq!(report["success"], false);
        assert_eq!((&report["error"]["phase"], &report["error"]["sent"]), (&"check".into(), &"no".into()));
        assert_eq!(format!("error: {}\n", report["error"]["message"].as_str().expect("a message")), message);
    }
}

#[test]
#[cfg(unix)]
fn references_alternatives_and_long_numbers_reach_the_server_as_typed() {
    let workspace = workspace_with_server();
    let words = ["level=low", "limit=12345678901234567890123", "size=1e3", "ids=1,2", "anything=5"];
    let output = workspace.wharf(&[&["call", "own__echo"][..], &words].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let sent = stdout(&output);
    let arguments =
        r#"{"level":"low","limit":12345678901234567890123,"size":1e3,"ids":[1,2],"anything":"5"}"#;
    assert!(sent.contains(arguments), "{sent}");
    let wrong = workspace.wharf(&["call", "own__echo", "level=middle"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("expected one of low, high"), "{}", stderr(&wrong));
}
