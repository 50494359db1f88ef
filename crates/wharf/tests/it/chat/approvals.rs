//! Approvals: a run waits without a task, and only the decision about exactly this call lets it continue.

use super::{
    ANN, BOB, CANARY, TODO, agent_file, ask_as, begin, on_both_engines, serve_callers, todos, wait_for,
};
use crate::serve::server::Server;
use scripted_model::{Action, Reply, ScriptedModel, Wire};
use serde_json::{Value, json};

const RULES: &str = "approval: {ask: ['todo:create_*']}\n";

fn model(titles: &[&str]) -> ScriptedModel {
    let mut replies: Vec<Reply> = titles
        .iter()
        .map(|title| {
            Reply::calls(
                Wire::Chat,
                &[
                    ("c1", "todo__create_todo", &json!({ "title": title }).to_string()),
                    ("c2", "todo__list_todos", "{}"),
                ],
            )
        })
        .collect();
    replies.push(Reply::text(Wire::Chat, "Finished."));
    ScriptedModel::start(replies)
}

/// Starts a run that continues without a client, and waits for its question.
fn start(server: &Server, body: &Value) -> Value {
    let mut body = body.clone();
    body["on_disconnect"] = "continue".into();
    let stream = begin(server, ANN, &body);
    let question = wait_for("the question", || question(server));
    drop(stream);
    question
}

fn question(server: &Server) -> Option<Value> {
    let (_, open) = ask_as(server, ANN, "GET", "/api/v1/approvals", None);
    open["items"].get(0).cloned()
}

fn decide(server: &Server, token: &str, question: &Value, body: &Value) -> (u16, Value) {
    let id = question["approval_id"].as_str().expect("an id");
    ask_as(server, token, "POST", &format!("/api/v1/approvals/{id}"), Some(body))
}

/// Waits until the conversation is idle, and returns its entries.
fn finished(server: &Server, question: &Value) -> Vec<Value> {
    let path = format!("/api/v1/conversations/{}", question["conversation_id"].as_str().expect("an id"));
    wait_for("the end of the run", || {
        let (_, shown) = ask_as(server, ANN, "GET", &path, None);
        (shown["state"] == "idle").then_some(())
    });
    let (_, entries) = ask_as(server, ANN, "GET", &format!("{path}/entries"), None);
    entries["items"].as_array().expect("a list").clone()
}

#[test]
fn an_allowed_call_is_made_and_everything_else_is_refused() {
    on_both_engines(|args| {
        let model = model(&["eggs"]);
        let server = serve_callers(&agent_file(&model, &format!("{RULES}{TODO}")), args);
        let question = start(&server, &json!({ "message": "Buy eggs" }));
        assert_eq!(
            (&question["tool_id"], &question["arguments"]),
            (&json!("todo:create_todo"), &json!({ "title": "eggs" }))
        );
        let digest = question["digest"].as_str().expect("a digest");
        assert!(digest.len() == 64 && digest.bytes().all(|it| it.is_ascii_hexdigit()), "{digest}");
        let yes = json!({ "decision": "allow", "digest": digest });
        for (token, body, expected) in [
            (BOB, yes.clone(), 404),
            (ANN, json!({ "decision": "allow" }), 422),
            (ANN, json!({ "decision": "maybe", "digest": digest }), 422),
            (ANN, json!({ "decision": "allow", "digest": "0".repeat(64) }), 409),
        ] {
            let (status, problem) = decide(&server, token, &question, &body);
            assert_eq!(status, expected, "{problem}");
        }
        assert_eq!(todos(&server), Vec::<String>::new(), "nothing is executed before the decision");
        let (_, hidden) = ask_as(&server, BOB, "GET", "/api/v1/approvals", None);
        assert_eq!(hidden["items"], json!([]));
        assert_eq!(decide(&server, ANN, &question, &yes).0, 200);
        let entries = finished(&server, &question);
        let approval = entries.iter().find(|it| it["kind"] == "approval").expect("an approval");
        assert_eq!((&approval["body"]["by"], &approval["body"]["digest"]), (&json!("ann"), &json!(digest)));
        assert_eq!(todos(&server), ["eggs"]);
        assert_eq!(decide(&server, ANN, &question, &yes).0, 409, "a decision is made once");
        assert_eq!(model.requests().len(), 2);
    });
}

#[test]
fn a_denied_and_an_expired_call_are_not_made() {
    let model = model(&["eggs", "milk", "milk"]);
    let server = serve_callers(&agent_file(&model, &format!("{RULES}{TODO}")), &[]);
    let first = start(&server, &json!({ "message": "Buy eggs" }));
    let no = json!({ "decision": "deny", "digest": first["digest"], "reason": "too many eggs" });
    assert_eq!(decide(&server, ANN, &first, &no).0, 200);
    // The model then asks for milk in the same run; that question stays open.
    let second = wait_for("the second question", || question(&server));
    let cancelled = second["conversation_id"].as_str().expect("an id");
    let (status, _) =
        ask_as(&server, ANN, "POST", &format!("/api/v1/conversations/{cancelled}/cancel"), None);
    assert_eq!(status, 202);
    let entries = finished(&server, &second);
    let text = json!(entries).to_string();
    assert!(text.contains("denied: ann did not allow this call: too many eggs."), "{text}");
    assert!(text.contains(r#""status":"cancelled""#), "{text}");
    let expiring = json!({ "message": "Buy milk", "limits": { "approval_timeout": 1 }, "stream": false });
    let (status, done) = ask_as(&server, ANN, "POST", "/api/v1/chat", Some(&expiring));
    assert_eq!(status, 200, "{done}");
    let entries = finished(&server, &done);
    assert!(json!(entries).to_string().contains("nobody decided in time"), "{entries:?}");
    assert_eq!(todos(&server), Vec::<String>::new());
}

#[test]
fn a_tool_is_allowed_for_a_conversation() {
    let model = model(&["one", "two"]);
    let server = serve_callers(&agent_file(&model, &format!("{RULES}{TODO}")), &[]);
    let question = start(&server, &json!({ "message": "Two todos" }));
    let always = json!({ "decision": "allow", "scope": "tool", "digest": question["digest"] });
    assert_eq!(decide(&server, ANN, &question, &always).0, 200);
    finished(&server, &question);
    let mut made = todos(&server);
    made.sort();
    assert_eq!(made, ["one", "two"]);
}

/// Maximum number of runs of one principal.
const MAX_RUNS: usize = 8;

/// Never answers if asked to stay silent. Otherwise creates a todo.
fn silent_or_calling_model() -> ScriptedModel {
    ScriptedModel::with(|_, request| match request.body.to_string() {
        body if body.contains("stay silent") => Reply::stream("").then(Action::Hang),
        body if body.contains("tool_call_id") => Reply::text(Wire::Chat, "Finished."),
        _ => Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#)]),
    })
}

/// A run that waits can be cancelled while the principal has as many other runs as it may have.
#[test]
fn a_waiting_run_is_cancelled_without_room_for_another() {
    let model = silent_or_calling_model();
    let server = serve_callers(&agent_file(&model, &format!("{RULES}{TODO}")), &[]);
    let question = start(&server, &json!({ "message": "Buy eggs" }));
    let _others: Vec<_> =
        (0..MAX_RUNS).map(|_| begin(&server, ANN, &json!({ "message": "stay silent" }))).collect();
    model.wait_for_requests(1 + MAX_RUNS);
    let id = question["conversation_id"].as_str().expect("an id");
    let (status, problem) = ask_as(&server, ANN, "POST", &format!("/api/v1/conversations/{id}/cancel"), None);
    assert_eq!(status, 202, "{problem}");
    wait_for("the end of the run", || {
        let (_, conversation) = ask_as(&server, ANN, "GET", &format!("/api/v1/conversations/{id}"), None);
        (conversation["state"] == "idle").then_some(())
    });
    assert_eq!(todos(&server), Vec::<String>::new());
}

/// A decision that comes while the principal has as many runs as it may have is not lost.
#[test]
fn a_decided_run_waits_until_there_is_room() {
    let model = silent_or_calling_model();
    let server = serve_callers(&agent_file(&model, &format!("{RULES}{TODO}")), &[]);
    let question = start(&server, &json!({ "message": "Buy eggs" }));
    let mut others: Vec<_> =
        (0..MAX_RUNS).map(|_| begin(&server, ANN, &json!({ "message": "stay silent" }))).collect();
    model.wait_for_requests(1 + MAX_RUNS);
    let yes =
        json!({ "approval_id": question["approval_id"], "decision": "allow", "digest": question["digest"] });
    let decided =
        json!({ "conversation_id": question["conversation_id"], "approvals": [yes], "stream": false });
    let (status, problem) = ask_as(&server, ANN, "POST", "/api/v1/chat", Some(&decided));
    assert_eq!(status, 429, "{problem}");
    let (status, problem) =
        ask_as(&server, ANN, "POST", "/api/v1/chat", Some(&json!({ "message": "stay silent" })));
    assert_eq!(status, 429, "{problem}");
    let (_, listed) = ask_as(&server, ANN, "GET", "/api/v1/conversations", None);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1 + MAX_RUNS), "a refused run leaves none");
    others.pop();
    finished(&server, &question);
    assert_eq!(todos(&server), ["eggs"]);
}

#[test]
fn a_rule_that_matches_no_tool_is_logged() {
    let rules = "approval: {ask: ['todo:create_*'], deny: ['todo:remove_*']}\n";
    let server = serve_callers(&agent_file(&model(&[]), &format!("{rules}{TODO}")), &[]);
    let warning = "approval rule 'todo:remove_*' matches no tool";
    wait_for("the warning", || server.log().contains(warning).then_some(()));
    assert_eq!(server.log().matches("matches no tool").count(), 1, "{}", server.log());
}

#[test]
fn a_run_waits_through_a_restart() {
    let model = model(&["eggs"]);
    let file = agent_file(&model, &format!("{RULES}{TODO}"));
    let server = serve_callers(&file, &[]);
    let asked = start(&server, &json!({ "message": "Buy eggs" }));
    let mut server = server;
    server.child.kill().expect("it runs");
    let folder = server.into_folder();
    let settings = folder.path().join("wharf.toml").display().to_string();
    let variables = [("MODEL_KEY", CANARY), ("ANN", ANN), ("BOB", BOB)];
    let server = Server::start_with(folder, &["--settings", &settings], &variables);
    let open = wait_for("the question", || question(&server));
    assert_eq!(open["approval_id"], asked["approval_id"]);
    let yes = json!({ "decision": "allow", "digest": open["digest"] });
    assert_eq!(decide(&server, ANN, &open, &yes).0, 200);
    finished(&server, &open);
    assert_eq!(todos(&server), ["eggs"]);
}
