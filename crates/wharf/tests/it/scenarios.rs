//! Tests `wharf test`: scenarios pass against their recordings in a network namespace without network, and each failure is
//! explained.

use crate::replays::{echo_workspace, isolated};
use scripted_model::{Reply, ScriptedModel, Wire};
use std::fs;

#[tokio::test]
async fn scenarios_are_recorded_and_then_pass_without_server_network_and_keys() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("x", "own__echo", r#"{"path": "a.txt"}"#)]),
        Reply::text(Wire::Chat, "I have read a.txt."),
    ]);
    let head = format!(
        "model: {{provider: openai, name: m, endpoint: '{}', api_key: '${{KEY}}'}}\napproval: {{allow: ['own:*']}}\n",
        model.url()
    );
    let workspace = echo_workspace(&head).set("KEY", "model-key-model-key");
    workspace.make_folder("tests/more");
    let asks = "name: reads the file\ncassette: reads.cassette.jsonl\nmessage: Read a.txt\nexpect:\n  \
                calls: [{tool: own__echo, arguments: {path: {matches: '^a'}}, result: {contains: a.txt}}]\n  \
                never: ['*__delete_*']\n  answer: {contains: [a.txt], not: [error]}\n  max: {turns: 2, tokens: 6000}\n";
    let calls = "cassette: calls.cassette.jsonl\ncalls:\n  - {tool: 'own:echo', arguments: {path: one}}\n  \
                 - {tool: own__echo, arguments: {path: refused}}\nexpect:\n  calls: [{tool: own__echo}, {tool: own__echo, result: {contains: 'no'}}]\n";
    fs::write(workspace.path("tests/reads.test.yaml"), asks).expect("a file");
    fs::write(workspace.path("tests/more/calls.test.yaml"), calls).expect("a file");
    workspace
        .wharf("test")
        .await
        .check(2, "there is no recording reads.cassette.jsonl; `wharf test --update` makes it");
    workspace.wharf("test --update").await.check(0, "2 passed, 0 failed");
    drop(model);
    fs::remove_file(workspace.path("server.py")).expect("the server");
    let (code, text) = isolated(&workspace, &["test", "tests", "--junit", "results.xml"]);
    let expected = "ok    tests/more/calls.test.yaml\nok    reads the file (tests/reads.test.yaml)\n2 passed, 0 failed\n";
    assert_eq!((code, text.as_str()), (Some(0), expected));
    let junit = fs::read_to_string(workspace.path("results.xml")).expect("the results");
    assert!(junit.contains(r#"tests="2" failures="0" errors="0""#), "{junit}");

    let changed = asks.replace("^a", "^b").replace("contains: [a.txt]", "contains: [b.txt]");
    fs::write(workspace.path("tests/reads.test.yaml"), changed).expect("a file");
    let (code, text) = isolated(&workspace, &["test", "tests", "--junit", "results.xml", "--only", "reads*"]);
    let expected = "FAIL  reads the file (tests/reads.test.yaml)\n      \
                    call 1: /path is \"a.txt\", which does not match '^b'\n      \
                    the answer does not contain \"b.txt\": \"I have read a.txt.\"\n0 passed, 1 failed\n";
    assert_eq!((code, text.as_str()), (Some(1), expected));
    let junit = fs::read_to_string(workspace.path("results.xml")).expect("the results");
    assert!(junit.contains("<failure message=\"call 1: /path is &quot;a.txt&quot;"), "{junit}");

    let changed = calls.replace("path: one", "path: two");
    fs::write(workspace.path("tests/more/calls.test.yaml"), changed).expect("a file");
    let (code, text) = isolated(&workspace, &["test", "tests/more"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("nearest: line 3     /path \"two\", recorded \"one\""), "{text}");
    assert!(text.contains("note: line 3 of calls.cassette.jsonl was not used"), "{text}");
}

#[tokio::test]
async fn every_mistake_in_a_scenario_is_reported_with_its_line() {
    let workspace = echo_workspace("");
    let rows = [
        ("cassette: a.jsonl\n", "T-03"),
        ("cassette: a.jsonl\nmessage: a\ncalls: []\n", "T-03"),
        ("message: a\n", "T-02"),
        ("cassette: a.jsonl\nmessage: a\nexpects: {}\n", "did you mean 'expect'?"),
        ("cassette: a.jsonl\nmessage: a\nexpects: {}\n", "T-01"),
        ("cassette: a.jsonl\nmessage: a\nexpect: {anser: {}}\n", "T-01"),
        ("cassette: a.jsonl\nmessage: a\nexpect: {answer: {matches: '('}}\n", "T-04"),
        (
            "cassette: a.jsonl\nmessage: a\nexpect: {calls: [{tool: a, arguments: {b: {matches: '['}}}]}\n",
            "T-04",
        ),
        ("cassette: a.jsonl\nmessage: a\nexpect: {order: wrong}\n", "Supported: exact, subsequence, any"),
        ("cassette: a.jsonl\nmessage: a\nexpect: {calls: 5}\n", "a list of at most 1000 calls"),
    ];
    for (text, words) in rows {
        fs::write(workspace.path("a.test.yaml"), text).expect("a file");
        let ran = workspace.wharf("test a.test.yaml").await;
        ran.check(2, words);
        ran.check(2, "a.test.yaml:");
    }
    workspace.wharf("test scratch").await.check(2, "there are no scenarios");
    workspace.wharf("test nowhere").await.check(2, "nowhere cannot be read");
}
