//! Tests `wharf why CONVERSATION`, prices, and the operator's bounds of a run.

use super::{json, stderr, stdout, workspace};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::json;
use std::fs;

fn model() -> ScriptedModel {
    ScriptedModel::start(vec![
        Reply::calls(
            Wire::Chat,
            &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#), ("c2", "todo__delete_todo", r#"{"id":7}"#)],
        ),
        Reply::text(Wire::Chat, "Created."),
    ])
}

#[test]
fn deferred_tools_are_explained_with_their_tokens() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Hello.")]);
    let workspace = workspace(Wire::Chat, &model, "context: {tool_budget: 1000}\n");
    let shown = stderr(&workspace.wharf(&["run", "Hi", "--save"]));
    let id = shown.lines().find_map(|it| it.strip_prefix("conversation ")).expect("an id").to_owned();
    let text = stdout(&workspace.wharf(&["why", &id]));
    let (offered, deferred) = text.split_once(" deferred, about ").unwrap_or_else(|| panic!("{text}"));
    assert!(offered.contains("wharf__find_tools") && !offered.contains("todo__create_todo"), "{text}");
    assert!(deferred.contains("todo__create_todo"), "{text}");
    let document = json(&workspace.wharf(&["why", &id, "--json"]));
    let deferred = document["runs"][0]["tools"]["deferred"].as_array().expect("a list");
    assert_eq!(deferred.len(), 5, "{document}");
    assert!(deferred.iter().all(|it| it["tokens"].as_u64() > Some(0)), "{document}");
}

#[test]
fn a_conversation_is_explained_with_the_rule_of_each_call() {
    let model = model();
    let workspace = workspace(Wire::Chat, &model, "approval: {ask: ['todo:delete_*']}\n");
    let first = workspace.wharf(&["run", "Buy eggs", "--save"]);
    let shown = stderr(&first);
    let id = shown.lines().find_map(|it| it.strip_prefix("conversation ")).expect("an id").to_owned();
    let text = stdout(&workspace.wharf(&["why", &id]));
    for expected in [
        "message: Buy eggs",
        " offered, about ",
        "todo__create_todo title=\"eggs\"",
        "decided: it is built in",
        "denied: the user did not allow this call: nobody is there to ask",
        "turn 2:",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    let document = json(&workspace.wharf(&["why", &id, "--json"]));
    let run = &document["runs"][0];
    assert_eq!(
        (&run["status"], &run["turns"][0]["usage"]["input"]),
        (&json!("finished"), &json!(10)),
        "{run}"
    );
    let call = json(&workspace.wharf(&["why", &id, "c1", "--json"]));
    assert_eq!((&call["status"], &call["fate"]), (&json!("completed"), &json!("answered")), "{call}");
    assert_eq!(
        (&call["why"], &call["tool_id"]),
        (&json!("it is built in"), &json!("todo:create_todo")),
        "{call}"
    );
    assert_eq!(call["digest"].as_str().map(str::len), Some(64), "{call}");
    let text = stdout(&workspace.wharf(&["why", &id, "c1"]));
    assert!(text.contains("digest:    ") && text.contains("\"title\": \"eggs\""), "{text}");
    for arguments in [&["why", &id, "c9"][..], &["why", "01900000-0000-7000-8000-000000000000"]] {
        let output = workspace.wharf(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(
            stderr(&output).contains("there is no conversation") || stderr(&output).contains("no call 'c9'")
        );
    }
}

#[test]
fn the_operator_bounds_runs_and_prices_models() {
    let settings = |text: &str| {
        let model = model();
        let workspace = workspace(Wire::Chat, &model, "limits: {max_turns: 20}\n");
        fs::create_dir_all(workspace.path("home")).expect("a folder");
        fs::write(workspace.path("wharf.toml"), text).expect("settings");
        let file = workspace.path("wharf.toml").display().to_string();
        let output = workspace.wharf(&["run", "Buy eggs", "--yes", "--json", "--settings", &file]);
        (output, model)
    };
    let (output, model) = settings("[agent]\nmax_turns = 1\n[agent.prices.m]\ninput = 100\noutput = 1000\n");
    let done = json(&output);
    assert_eq!((&done["status"], &done["turns"]), (&json!("limit"), &json!(2)), "{done}");
    let last = model.requests()[1].body.to_string();
    assert!(last.contains("The limit 'limits.max_turns' is reached."), "{last}");
    let cost = done["cost"].as_f64().expect("a cost");
    assert!((cost - 0.012).abs() < 1e-9, "20 tokens in and 10 out: {done}");
    let (output, model) =
        settings("[agent]\nmax_cost = 0.005\n[agent.prices.m]\ninput = 100\noutput = 1000\n");
    let done = json(&output);
    assert_eq!(
        (&done["status"], &done["error"]["error_type"]),
        (&json!("limit"), &json!("limit_reached")),
        "{done}"
    );
    assert_eq!(model.requests().len(), 1, "no further request");
    let (output, model) = settings("[agent]\nmax_cost = 1.5\n");
    assert_eq!((output.status.code(), model.requests().len()), (Some(2), 0), "{}", stderr(&output));
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(said.contains("'max_cost' needs the price of the model"), "{said}");
    let (output, model) = settings("[agent.approval]\ndeny = [\"todo:create_*\"]\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let offered = model.requests()[0].body["tools"].to_string();
    assert!(!offered.contains("todo__create_todo"), "a denied tool is not offered: {offered}");
    let result = model.requests()[1].body.to_string();
    assert!(result.contains("the rule 'todo:create_*' denies it"), "--yes does not loosen it: {result}");
}
