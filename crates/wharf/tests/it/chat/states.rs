//! Ends runs in each of their states, and continues the conversation: rows of states times ends.

use super::{CANARY, TODO, agent_file, begin, todos, wait_for};
use crate::{serve::server::Server, servers::workspace::program};
use scripted_model::{Action, Reply, Request, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// A server whose tool `never` does not answer. It logs what it receives.
const SERVER: &str = include_str!("../cli/server.py");

/// State in which a run is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActiveState {
    /// The model answers.
    Asking,
    /// A tool is called.
    Calling,
    /// A person is asked.
    Waiting,
}

/// Event that ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunEnd {
    Cancel,
    ClientGone,
    Kill,
    /// The gateway is stopped with SIGTERM.
    Stop,
}

/// A model that brings a run into a state with its first answer, and then says that it is done.
fn reply(state: ActiveState, request: &Request) -> Reply {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let is_first = messages.last().is_some_and(|it| it["content"] == "begin");
    match (is_first, state) {
        (true, ActiveState::Asking) => Reply::stream("").then(Action::Hang),
        (true, ActiveState::Calling) => Reply::calls(Wire::Chat, &[("c1", "own__never", "{}")]),
        (true, ActiveState::Waiting) => {
            Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#)])
        }
        (false, _) => Reply::text(Wire::Chat, "Done."),
    }
}

fn start(folder: TempDir) -> Server {
    let settings = folder.path().join("wharf.toml").display().to_string();
    Server::start_with(folder, &["--settings", &settings], &[("MODEL_KEY", CANARY)])
}

fn serve(model: &ScriptedModel) -> Server {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let python = program("python3").canonicalize().expect("a path").display().to_string();
    let rules = "approval: {default: allow, ask: ['todo:create_*']}\n";
    let own = format!(
        "  - name: own\n    description: A server of ours\n    type: mcp\n    server: own\n    command: {python}\n    \
         args: [{}]\n    env: {{LOG: {}}}\n",
        path("server.py"),
        path("calls"),
    );
    for (name, text) in [
        ("agent.yaml", agent_file(model, &format!("{rules}{TODO}{own}"))),
        ("wharf.toml", format!("[grants]\ncommands = [\"{python}\"]\n")),
        ("server.py", SERVER.to_owned()),
    ] {
        fs::write(path(name), text).expect("a file");
    }
    start(folder)
}

/// Returns the number of calls that the server has received.
fn calls_made(server: &Server) -> usize {
    let log = fs::read_to_string(server.folder.path().join("calls")).unwrap_or_default();
    log.matches("\"tools/call\"").count()
}

fn conversation(server: &Server) -> Value {
    server.ask("GET", "/api/v1/conversations?limit=1", None).1["items"][0].clone()
}

fn question(server: &Server) -> Option<Value> {
    server.ask("GET", "/api/v1/approvals", None).1["items"].get(0).cloned()
}

/// Waits until the run is in the state.
fn wait_for_state(server: &Server, model: &ScriptedModel, state: ActiveState) {
    match state {
        ActiveState::Asking => model.wait_for_requests(1),
        ActiveState::Calling => wait_for("the call", || (calls_made(server) == 1).then_some(())),
        ActiveState::Waiting => {
            wait_for("the question", || question(server));
            wait_for("the state", || (conversation(server)["state"] == "waiting").then_some(()));
        }
    }
}

/// Ends the run, and waits until the conversation is in this state. Returns the gateway, which may be another one.
fn end_run(mut server: Server, model: &ScriptedModel, state: ActiveState, end: RunEnd) -> Server {
    let client = begin(&server, &server.token, &json!({ "message": "begin" }));
    wait_for_state(&server, model, state);
    let id = conversation(&server)["id"].as_str().expect("an id").to_owned();
    let after = match (state, end) {
        (ActiveState::Waiting, RunEnd::ClientGone | RunEnd::Kill | RunEnd::Stop) => "waiting",
        (_, RunEnd::Kill | RunEnd::Stop) => "interrupted",
        _ => "idle",
    };
    match end {
        RunEnd::Cancel => {
            let path = format!("/api/v1/conversations/{id}/cancel");
            assert_eq!(server.ask("POST", &path, None).0, 202, "{state:?}");
        }
        RunEnd::ClientGone => drop(client),
        RunEnd::Kill => {
            server.child.kill().expect("it runs");
            server = start(server.into_folder());
        }
        RunEnd::Stop => {
            server.send_term();
            server = start(server.into_folder());
        }
    }
    wait_for("the end", || (conversation(&server)["state"] == after).then_some(()));
    server
}

/// Continues the conversation: by the decision for which it waits, or by another message. Returns its entries.
fn continue_conversation(server: &Server) -> Vec<Value> {
    let id = conversation(server)["id"].as_str().expect("an id").to_owned();
    if let Some(question) = question(server) {
        let path = format!("/api/v1/approvals/{}", question["approval_id"].as_str().expect("an id"));
        let yes = json!({ "decision": "allow", "digest": question["digest"] });
        assert_eq!(server.ask("POST", &path, Some(&yes)).0, 200);
        wait_for("the end", || (conversation(server)["state"] == "idle").then_some(()));
    }
    let body = json!({ "message": "go on", "conversation_id": id, "stream": false });
    let (status, done) = server.ask("POST", "/api/v1/chat", Some(&body));
    assert_eq!((status, &done["status"]), (200, &json!("finished")), "{done}");
    let (_, entries) = server.ask("GET", &format!("/api/v1/conversations/{id}/entries"), None);
    entries["items"].as_array().expect("entries").clone()
}

/// Ends a run in a state and checks what its call came to.
fn check(state: ActiveState, end: RunEnd, expected: Option<&str>) {
    let model = ScriptedModel::with(move |_, request| reply(state, request));
    let server = end_run(serve(&model), &model, state, end);
    let entries = continue_conversation(&server);
    let results: Vec<&Value> = entries.iter().filter(|it| it["kind"] == "result").collect();
    let statuses: Vec<&str> = results.iter().filter_map(|it| it["body"]["status"].as_str()).collect();
    assert_eq!(statuses, Vec::from_iter(expected), "{state:?} {end:?}: {entries:?}");
    let made = usize::from(state == ActiveState::Calling);
    assert_eq!(calls_made(&server), made, "{state:?} {end:?}: no call is repeated");
    let created = if expected == Some("completed") { vec!["eggs"] } else { Vec::new() };
    assert_eq!(todos(&server), created, "{state:?} {end:?}");
}

#[test]
fn a_run_that_ends_while_the_model_answers_leaves_no_call() {
    for end in [RunEnd::Cancel, RunEnd::ClientGone, RunEnd::Kill, RunEnd::Stop] {
        check(ActiveState::Asking, end, None);
    }
}

#[test]
fn a_run_that_ends_in_a_call_says_that_its_fate_is_unknown() {
    for end in [RunEnd::Cancel, RunEnd::ClientGone, RunEnd::Kill] {
        check(ActiveState::Calling, end, Some("unknown"));
    }
}

#[test]
fn a_run_that_waits_outlives_its_client_and_its_gateway() {
    check(ActiveState::Waiting, RunEnd::Cancel, Some("denied"));
    check(ActiveState::Waiting, RunEnd::ClientGone, Some("completed"));
    check(ActiveState::Waiting, RunEnd::Kill, Some("completed"));
    check(ActiveState::Waiting, RunEnd::Stop, Some("completed"));
}
