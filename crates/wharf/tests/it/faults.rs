//! Tests `--faults`: each kind of fault has the effect of a real one, and rules that cannot be used are reported.

use crate::{
    replays::echo_workspace,
    serve::server::{Server, wharf},
    servers::workspace::Workspace,
};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::json;
use std::{fs, time::Instant};
use tempfile::TempDir;

fn write_faults(workspace: &Workspace, rules: &str) {
    fs::write(workspace.path("faults.yaml"), format!("faults:\n{rules}")).expect("a file");
}

#[tokio::test]
async fn each_kind_of_fault_has_the_effect_of_a_real_one() {
    let workspace = echo_workspace("");
    workspace.wharf("call own:echo path=a.txt --record a.jsonl").await.check(0, "a.txt");
    let rows = [
        ("kind: tool_error, text: it is busy", 1, "it is busy"),
        ("kind: rpc_error, code: -32050, text: no more", 76, "no more"),
        ("kind: disconnect", 69, "an injected fault ended the connection"),
        ("kind: malformed", 76, "MCPProtocolError"),
        ("kind: oversized, bytes: 17000000", 76, "longer than the limit"),
        ("kind: oversized, bytes: 50", 0, &"x".repeat(50)),
        ("kind: list_changed, times: 3", 0, "a.txt"),
        ("kind: delay, ms: 1", 0, "a.txt"),
        ("kind: drop, nth: [2]", 0, "a.txt"),
        ("kind: drop, rate: 0", 0, "a.txt"),
    ];
    for (rule, code, text) in rows {
        write_faults(&workspace, &format!("- {{tool: 'own:e*', {rule}}}\n"));
        for target in ["--replay a.jsonl", "--direct"] {
            let ran =
                workspace.wharf(&format!("call own:echo path=a.txt --faults faults.yaml {target}")).await;
            ran.check(code, text);
        }
    }
    for rule in ["kind: drop", "kind: delay, ms: 3600000"] {
        write_faults(&workspace, &format!("- {{tool: '*', {rule}}}\n"));
        let started = Instant::now();
        let call = "call own:echo path=a.txt --timeout 1 --faults faults.yaml --replay a.jsonl";
        workspace.wharf(call).await.check(124, "MCPTimeoutError");
        assert!(started.elapsed().as_secs() >= 1, "{rule}");
    }
}

#[tokio::test]
async fn rules_that_cannot_be_used_are_reported_with_their_line() {
    let workspace = echo_workspace("");
    let rows = [
        ("seed: 1\n", "X-01"),
        ("faults: 5\n", "a list of at most 1000 rules"),
        ("faults: [{kind: drop}]\n", "X-02"),
        ("faults: [{tool: a, model: true, kind: drop}]\n", "X-02"),
        ("faults: [{tool: a}]\n", "X-03"),
        ("faults: [{tool: a, kind: delay}]\n", "'ms' is missing"),
        ("faults: [{tool: a, kind: oversized, bytes: 33554433}]\n", "at most 33554432"),
        ("faults: [{tool: a, kind: drop, ms: 5}]\n", "X-04"),
        ("faults: [{model: true, kind: malformed}]\n", "X-05"),
        ("faults: [{tool: a, kind: drop, nth: [1], rate: 0.5}]\n", "X-06"),
        ("faults: [{tool: a, kind: drop, nth: [0]}]\n", "a list of positive integers"),
        ("faults: [{tool: a, kind: drop, rate: 1.5}]\n", "a number from 0 to 1"),
        ("faults: [{tool: a, kind: explode}]\n", "Supported: delay, drop"),
        ("faults: [{tools: a, kind: drop}]\n", "did you mean 'tool'?"),
    ];
    for (text, words) in rows {
        fs::write(workspace.path("faults.yaml"), text).expect("a file");
        let ran = workspace.wharf("call own:echo path=a.txt --faults faults.yaml").await;
        ran.check(2, words);
        ran.check(2, "faults.yaml");
    }
    workspace
        .wharf("call own:echo path=a --faults nowhere.yaml")
        .await
        .check(2, "nowhere.yaml cannot be used");
}

#[tokio::test]
async fn scenario_with_faults_of_tool_and_model_passes_without_server_and_model() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("x", "own__echo", r#"{"path": "a.txt"}"#)]),
        Reply::calls(Wire::Chat, &[("y", "own__echo", r#"{"path": "a.txt"}"#)]),
        Reply::text(Wire::Chat, "The second try worked."),
    ]);
    let head = format!(
        "model: {{provider: openai, name: m, endpoint: '{}', api_key: '${{KEY}}'}}\napproval: {{allow: ['own:*']}}\n",
        model.url()
    );
    let workspace = echo_workspace(&head).set("KEY", "model-key-model-key");
    let scenario = "cassette: a.cassette.jsonl\nmessage: Read a.txt\nfaults:\n\
                    - {tool: 'own:echo', kind: tool_error, text: busy, nth: [1]}\n\
                    - {model: true, kind: rpc_error, code: 503, text: overloaded, nth: [2]}\n\
                    expect:\n  calls: [{tool: own__echo, result: {contains: busy}}, {tool: own__echo, result: {contains: a.txt}}]\n  \
                    answer: {contains: second try}\n";
    fs::write(workspace.path("a.test.yaml"), scenario).expect("a file");
    workspace.wharf("test --update").await.check(0, "1 passed, 0 failed");
    drop(model);
    let recorded = fs::read_to_string(workspace.path("a.cassette.jsonl")).expect("the recording");
    assert_eq!(recorded.matches(r#"{"call":"#).count(), 1, "the injected result is not recorded: {recorded}");
    fs::remove_file(workspace.path("server.py")).expect("the server");
    let ran = workspace.wharf("test").await;
    ran.check(0, "1 passed, 0 failed");
    assert!(!ran.stdout.contains("note:"), "every line is used: {}", ran.stdout);
}

#[test]
fn injected_disconnects_open_the_breaker_of_a_gateway_that_says_so() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("faults.yaml"), "faults: [{tool: '*', kind: disconnect}]\n")
        .expect("a file");
    let mut elsewhere = wharf(&folder);
    let elsewhere = elsewhere.args(["serve", "--faults", "faults.yaml", "--listen", "0.0.0.0:0"]);
    let refused = elsewhere.output().expect("wharf runs");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("--faults is only allowed on loopback"), "{text}");

    let server = Server::start_in(folder, &["--faults", "faults.yaml"]);
    let call =
        || server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&json!({ "arguments": {} }))).1;
    for _ in 0..5 {
        let failed = call();
        assert_eq!(failed["type"], "MCPConnectionError", "{failed}");
    }
    let refused = call().to_string();
    assert!(refused.contains("circuit breaker"), "{refused}");
    assert_eq!(server.ask("GET", "/ready", None).1["faults"], 1);
    assert!(server.text("/metrics").contains("wharf_injected_faults_total 5"));
    let log = fs::read_to_string(server.folder.path().join("log")).expect("a log");
    assert!(log.contains("warning: faults are injected into calls (1 rule)"), "{log}");
}
