//! Changes of the agent file while a run is under way or waits: a run keeps the tools that it began with.

use super::{TODO, agent_file, begin, serve, todos, wait_for};
use crate::serve::server::Server;
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{Arc, OnceLock, Weak},
};

/// A source of this name, with the built-in Todo server.
fn source(name: &str) -> String {
    format!("  - name: {name}\n    description: Todos\n    type: mcp\n    server: builtin:todo\n")
}

/// Writes the agent file, and waits until the gateway lists a tool.
fn change_file(server: &Server, file: &str, is_changed: impl Fn(&Value) -> bool) {
    fs::write(server.folder.path().join("agent.yaml"), file).expect("an agent file");
    wait_for("the change", || {
        let (_, tools) = server.ask("GET", "/api/v1/tools?limit=100", None);
        tools["items"].as_array().is_some_and(|it| it.iter().any(&is_changed)).then_some(())
    });
}

/// Returns the words that the model was told about a call.
fn result<'a>(body: &'a Value, call_id: &str) -> &'a str {
    let mut messages = body["messages"].as_array().expect("messages").iter();
    let found = messages.find(|it| it["tool_call_id"] == call_id);
    found.and_then(|it| it["content"].as_str()).unwrap_or_else(|| panic!("{body}"))
}

/// The first request changes the agent file before it is answered: one source is gone, another one is new.
#[test]
fn a_run_keeps_the_tools_that_it_began_with() {
    // The model outlives the gateway, so it does not own it.
    let gateway: Arc<OnceLock<(Weak<Server>, String)>> = Arc::default();
    let changing = gateway.clone();
    let model = ScriptedModel::with(move |number, _| match number {
        0 => {
            let (server, file) = changing.get().expect("the gateway runs");
            change_file(&server.upgrade().expect("the gateway runs"), file, |it| it["source"] == "new");
            let calls = [
                ("c1", "todo__create_todo", r#"{"title":"eggs"}"#),
                ("c2", "old__list_todos", "{}"),
                ("c3", "new__list_todos", "{}"),
            ];
            Reply::calls(Wire::Chat, &calls)
        }
        _ => Reply::text(Wire::Chat, "Done."),
    });
    let file = |other: &str| agent_file(&model, &format!("{TODO}{}", source(other)));
    let server = Arc::new(serve(&file("old")));
    gateway.set((Arc::downgrade(&server), file("new"))).expect("one gateway");
    let (status, done) = super::ask(&server, "Hi");
    assert_eq!((status, &done["final_output"]), (200, &json!("Done.")), "{done}");
    let requests = model.requests();
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"], "the offered tools stay the same");
    let second = &requests[1].body;
    assert!(result(second, "c1").contains("eggs"), "{second}");
    assert!(result(second, "c2").starts_with("not executed: "), "{second}");
    assert!(result(second, "c3").starts_with("there is no tool 'new__list_todos'"), "{second}");
    assert_eq!(todos(&server), ["eggs"]);
    assert_eq!(super::ask(&server, "And now?").0, 200);
    let offered = model.requests()[2].body["tools"].to_string();
    assert!(offered.contains("new__list_todos") && !offered.contains("old__"), "the next run: {offered}");
}

/// Allows the only call that waits.
fn wait_for_question(server: &Server) -> Value {
    wait_for("the question", || server.ask("GET", "/api/v1/approvals", None).1["items"].get(0).cloned())
}

fn allow(server: &Server, question: &Value) {
    let path = format!("/api/v1/approvals/{}", question["approval_id"].as_str().expect("an id"));
    let yes = json!({ "decision": "allow", "digest": question["digest"] });
    assert_eq!(server.ask("POST", &path, Some(&yes)).0, 200);
}

/// A run that waits is restored from its entries, with the tools that it offered.
#[test]
fn a_run_that_waited_keeps_the_tools_that_it_began_with() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#)]),
        Reply::calls(Wire::Chat, &[("c2", "new__list_todos", "{}")]),
        Reply::text(Wire::Chat, "Done."),
    ]);
    let file = agent_file(&model, &format!("approval: {{ask: ['todo:create_*']}}\n{TODO}"));
    let server = serve(&file);
    let client = begin(&server, &server.token, &json!({ "message": "Buy eggs" }));
    let question = wait_for_question(&server);
    change_file(&server, &format!("{file}{}", source("new")), |it| it["source"] == "new");
    allow(&server, &question);
    model.wait_for_requests(3);
    drop(client);
    let requests = model.requests();
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"], "the offered tools stay the same");
    let third = &requests[2].body;
    assert!(result(third, "c2").starts_with("there is no tool 'new__list_todos'"), "{third}");
    assert_eq!(todos(&server), ["eggs"]);
}

/// A person allowed the call of one definition, so a call of another one is not made.
#[test]
fn a_call_whose_definition_changes_while_it_waits_is_not_made() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#)]),
        Reply::text(Wire::Chat, "Done."),
    ]);
    let file = agent_file(&model, &format!("approval: {{ask: ['todo:create_*']}}\n{TODO}"));
    let server = serve(&file);
    let client = begin(&server, &server.token, &json!({ "message": "Buy eggs" }));
    let question = wait_for_question(&server);
    let changed = "    overrides: {create_todo: {description: Sends a letter.}}\n";
    change_file(&server, &format!("{file}{changed}"), |it| it["description"] == "Sends a letter.");
    allow(&server, &question);
    model.wait_for_requests(2);
    drop(client);
    let second = &model.requests()[1].body;
    assert!(result(second, "c1").starts_with("not executed: "), "{second}");
    assert_eq!(todos(&server), Vec::<String>::new());
}
