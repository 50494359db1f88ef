//! Tests that changed prompts, resource templates and instructions are shown, logged and accepted like tools.

use super::{disabled_tools::mcp, upstream::Upstream};
use crate::serve::server::{Server, wharf};
use serde_json::{Value, json};
use std::{fs, thread::sleep, time::Duration};
use tempfile::TempDir;

const FIRST: &str = "Plans a day.";
const CHANGED: &str = "Plans a day, and sends it to another server.";

/// Serves a registered server whose first listing is accepted.
fn serve_first_use(upstream: &Upstream) -> Server {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("settings.toml");
    fs::write(&path, "[lock]\nregistered = \"first-use\"\n").expect("settings");
    let server = Server::start_with(folder, &["--settings", &path.display().to_string()], &[]);
    let source = json!({ "name": "far", "mcp_server_url": format!("http://{}", upstream.address) });
    let (status, source) = server.ask("POST", "/api/v1/sources", Some(&source));
    assert_eq!(status, 201, "{source}");
    server
}

/// Waits until the item of this kind has this state.
fn wait_for_state(server: &Server, kind: &str, state: &str) -> Value {
    let mut list = Value::Null;
    for _ in 0..400 {
        list = server.ask("GET", &format!("/api/v1/lock?source=far&kind={kind}"), None).1;
        if list["items"][0]["state"] == state {
            return list["items"][0].clone();
        }
        sleep(Duration::from_millis(25));
    }
    panic!("the {kind} does not become {state}: {list}");
}

/// Changes all texts of the server, and starts a new session, because only a new one has other instructions.
fn change(server: &Server, upstream: &Upstream, text: &'static str) {
    upstream.describe_others(text);
    assert_eq!(server.ask("POST", "/api/v1/connections/far/restart", None).0, 200);
    let call = json!({ "arguments": { "millis": 0 } });
    let (status, answer) = server.ask("POST", "/api/v1/tools/far:slow/call", Some(&call));
    assert_eq!(status, 200, "{answer}");
}

fn accept(server: &Server, item: &Value) -> (u16, Value) {
    let (kind, source, name) = (&item["kind"], &item["source"], &item["name"]);
    let body = json!({ "kind": kind, "source": source, "name": name, "hash": item["hash"] });
    server.ask("POST", "/api/v1/lock/accepted", Some(&body))
}

#[test]
fn changed_prompts_templates_and_instructions_are_blocked_until_accepted() {
    let upstream = Upstream::start_describing(FIRST);
    let server = serve_first_use(&upstream);
    let prompts = || -> Vec<Value> {
        let list = mcp(&server, "prompts/list", json!({}));
        let all = list["result"]["prompts"].as_array().expect("prompts");
        all.iter().filter(|it| it["name"] == "far__plan").map(|it| it["description"].clone()).collect()
    };
    for (kind, name) in [("prompt", "plan"), ("template", "file:///{path}"), ("instructions", "")] {
        let item = wait_for_state(&server, kind, "accepted");
        let expected = (&Value::Null, &json!("far"), &json!(name));
        assert_eq!((&item["tool_id"], &item["source"], &item["name"]), expected, "{item}");
    }
    assert_eq!(prompts(), [FIRST]);

    change(&server, &upstream, CHANGED);
    for (kind, message) in [
        ("prompt", "the prompt `plan` of `far` differs from the accepted definition: description changed"),
        ("template", "the template `file:///{path}` of `far` differs from the accepted definition"),
        (
            "instructions",
            "the instructions of `far` differ from the accepted definition: instructions changed",
        ),
    ] {
        let item = wait_for_state(&server, kind, "changed");
        assert_eq!(item["differences"][0]["before"], FIRST, "{item}");
        assert_eq!(item["differences"][0]["after"], CHANGED, "{item}");
        let log = server.log_with(message);
        assert_eq!(log.matches(message).count(), 1, "one line for each definition: {log}");
    }
    assert!(prompts().is_empty(), "{:?}", prompts());
    let prompt = wait_for_state(&server, "prompt", "changed");
    let stale = json!({ "kind": "prompt", "source": "far", "name": "plan", "hash": prompt["locked_hash"] });
    assert_eq!(server.ask("POST", "/api/v1/lock/accepted", Some(&stale)).0, 409);
    for wrong in [
        json!({ "kind": "prompt", "source": "far", "hash": "x" }),
        json!({ "kind": "resource", "source": "far", "name": "plan", "hash": "x" }),
        json!({ "kind": "prompt", "tool_id": "far:plan", "hash": "x" }),
    ] {
        assert_eq!(server.ask("POST", "/api/v1/lock/accepted", Some(&wrong)).0, 400, "{wrong}");
    }
    let as_tool = json!({ "tool_id": "far:plan", "hash": prompt["hash"] });
    assert_eq!(server.ask("POST", "/api/v1/lock/accepted", Some(&as_tool)).0, 404);

    let (status, accepted) = accept(&server, &prompt);
    assert_eq!((status, &accepted["state"]), (201, &json!("accepted")), "{accepted}");
    assert_eq!(accepted["accepted_by"], "operator", "{accepted}");
    assert_eq!(prompts(), [CHANGED]);
    let address = format!("http://{}", server.address);
    for id in ["far:file:///{path}", "far"] {
        let command = ["lock", "--accept", id, "--server", &address];
        let output = wharf(&server.folder).args(command).output().expect("wharf runs");
        assert!(output.status.success(), "{id}: {output:?}");
    }
    for kind in ["template", "instructions"] {
        wait_for_state(&server, kind, "accepted");
    }
}

#[test]
fn accepted_prompt_can_be_withdrawn_but_the_instructions_of_a_registered_server_cannot() {
    let upstream = Upstream::start_describing(FIRST);
    let server = serve_first_use(&upstream);
    wait_for_state(&server, "prompt", "accepted");
    let (status, refused) = server.ask("DELETE", "/api/v1/lock/accepted/far:?kind=instructions", None);
    assert_eq!(status, 409, "{refused}");
    assert_eq!(server.ask("DELETE", "/api/v1/lock/accepted/far:plan?kind=prompt", None).0, 200);
    wait_for_state(&server, "prompt", "new");
    wait_for_state(&server, "template", "accepted");
}
