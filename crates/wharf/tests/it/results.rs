//! Tests result handles: what the model and clients get instead of a large result, and what they do with it.

mod approvals;
mod gateway;
mod images;
mod queries;

use crate::{chat::agent_file, servers::workspace::program};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;

const SERVER: &str = include_str!("results/server.py");
/// A line of the texts that the server returns.
const LINE: &str = "line with \"quotes\", \\ and grüße, wharf://results/r-1\n";
/// A secret of the server.
const TOKEN: &str = "canary-token-51c2";

/// Writes the server and the operator's settings into a folder. Returns two entries of agent.yaml, `maker` and `keeper`,
/// that run it.
fn prepare(folder: &Path, settings: &str) -> String {
    let python = program("python3").canonicalize().expect("a path").display().to_string();
    fs::write(folder.join("server.py"), SERVER).expect("a file");
    let settings = format!("[grants]\ncommands = [\"{python}\"]\n\n{settings}");
    fs::write(folder.join("wharf.toml"), settings).expect("a file");
    let (script, out) = (folder.join("server.py"), folder.join("out"));
    let entry = |name: &str| {
        format!(
            "  - name: {name}\n    description: A server of ours\n    type: mcp\n    server: own\n    command: {python}\n    \
             args: [{}]\n    env: {{OUT: {}, TOKEN: '${{TOKEN}}'}}\n",
            script.display(),
            out.display()
        )
    };
    format!("tools:\n{}{}", entry("maker"), entry("keeper"))
}

/// Runs the agent with a scripted model. Returns the requests that the model got, and what the server kept.
fn run_agent(more: &str, replies: Vec<Reply>) -> (Vec<Value>, Vec<u8>) {
    let folder = TempDir::new().expect("a folder");
    let tools = prepare(folder.path(), "");
    let model = ScriptedModel::start(replies);
    let file =
        agent_file(&model, &format!("approval: {{default: allow, after_untrusted: allow}}\n{more}{tools}"));
    fs::write(folder.path().join("agent.yaml"), file).expect("a file");
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(["run", "Go", "--settings", "wharf.toml"])
        .current_dir(folder.path())
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("MODEL_KEY", "key-of-the-model"), ("TOKEN", TOKEN)])
        .env("WHARF_HOME", folder.path().join("state"))
        .env("TMPDIR", &temporary)
        .output()
        .expect("wharf runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let left: Vec<_> = fs::read_dir(temporary).expect("a folder").collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    let requests = model.requests().into_iter().map(|it| it.body).collect();
    (requests, fs::read(folder.path().join("out")).unwrap_or_default())
}

fn call(id: &str, name: &str, arguments: &Value) -> Reply {
    Reply::calls(Wire::Chat, &[(id, name, &arguments.to_string())])
}

/// Returns the result of a call, as the model reads it.
fn result_text(requests: &[Value], call_id: &str) -> String {
    let last = requests.last().expect("a request");
    let messages = last["messages"].as_array().expect("messages");
    let result = messages.iter().find(|it| it["tool_call_id"] == call_id);
    result.unwrap_or_else(|| panic!("{last}"))["content"].as_str().expect("a text").to_owned()
}

#[test]
fn large_results_cost_the_context_less_than_one_percent() {
    let bytes = 15 * 1_000_000;
    let (requests, _) = run_agent(
        "",
        vec![
            call("c1", "maker__text", &json!({ "bytes": bytes })),
            call("c2", "wharf__read_result", &json!({ "id": "r-1", "lines": "3-4" })),
            call("c3", "wharf__grep_result", &json!({ "id": "r-1", "pattern": "gr.ße", "max": 2 })),
            Reply::text(Wire::Chat, "Done."),
        ],
    );
    let size = |at: usize| requests[at].to_string().len();
    let cost = size(1) - size(0);
    assert!(cost < bytes / 100, "{cost} bytes for a result of {bytes} bytes");
    assert!(cost < 4096, "the result is a preview: {cost} bytes");
    let preview = result_text(&requests, "c1");
    assert!(preview.starts_with("result r-1 of maker__text: text, 15,0"), "{preview}");
    assert!(preview.contains(LINE.trim_end()) && preview.contains("pass it on as wharf://results/r-1"));
    assert!(
        result_text(&requests, "c2").starts_with(&format!("{LINE}{LINE}\n[line 5 of ")),
        "{}",
        result_text(&requests, "c2")
    );
    let found = result_text(&requests, "c3");
    assert!(found.starts_with("1: line with") && found.ends_with("[the first 2 matches]\n"), "{found}");
    let names: Vec<&str> = requests[0]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|it| it["function"]["name"].as_str())
        .collect();
    assert!(
        names.ends_with(&["wharf__read_result", "wharf__grep_result", "wharf__query_result"]),
        "{names:?}"
    );
}

#[test]
fn a_handle_arrives_at_another_server_byte_for_byte() {
    let (requests, kept) = run_agent(
        "",
        vec![
            call("c1", "maker__text", &json!({ "bytes": 3_000_000 })),
            call("c2", "keeper__keep", &json!({ "text": "wharf://results/r-1" })),
            Reply::text(Wire::Chat, "Done."),
        ],
    );
    let expected = LINE.repeat(3_000_000 / LINE.len() + 1);
    assert!(kept == expected.as_bytes(), "{} of {} bytes", kept.len(), expected.len());
    assert_eq!(result_text(&requests, "c2"), format!("kept {} characters", expected.chars().count()));

    let (requests, kept) = run_agent(
        "",
        vec![
            call("c1", "maker__rows", &json!({ "bytes": 100_000, "long": true })),
            call("c2", "keeper__keep", &json!({ "text": { "$result": "r-1", "pointer": "/items/0/text" } })),
            call("c3", "keeper__keep", &json!({ "text": "wharf://results/r-1#/items/999999" })),
            call("c4", "keeper__keep", &json!({ "text": "wharf://results/r-7" })),
            call("c5", "wharf__query_result", &json!({ "id": "r-1", "query": ".items | length" })),
            Reply::text(Wire::Chat, "Done."),
        ],
    );
    assert!(kept == LINE.repeat(40_000).as_bytes(), "{} bytes", kept.len());
    assert!(
        result_text(&requests, "c1").contains("{items: [782 × {id: int, name: str, text: str}], next: null}")
    );
    assert!(result_text(&requests, "c3").contains("wharf://results/r-1#/items/999999 does not exist"));
    assert!(result_text(&requests, "c4").contains("there is no result 'r-7'"));
    assert_eq!(result_text(&requests, "c5"), "782\n");
}

#[test]
fn settings_decide_who_gets_handles() {
    let script =
        || vec![call("c1", "maker__text", &json!({ "bytes": 40_000 })), Reply::text(Wire::Chat, "Done.")];
    for (settings, is_stored) in
        [("", true), ("results: {inline_limit: 100000}\n", false), ("results: {for: [mcp]}\n", false)]
    {
        let (requests, _) = run_agent(settings, script());
        let is_preview = result_text(&requests, "c1").starts_with("result r-1 of maker__text");
        assert_eq!(is_preview, is_stored, "{settings}");
        let offers_tools = requests[0]["tools"].to_string().contains("wharf__read_result");
        assert_eq!(offers_tools, !settings.contains("for"), "{settings}");
    }
}

#[test]
fn secrets_are_not_in_stored_results() {
    let (requests, _) = run_agent(
        "results: {inline_limit: 512}\n",
        vec![
            call("c1", "maker__secret", &json!({})),
            call("c2", "wharf__read_result", &json!({ "id": "r-1" })),
            Reply::text(Wire::Chat, "Done."),
        ],
    );
    assert!(result_text(&requests, "c2").starts_with("*** *** "), "{}", result_text(&requests, "c2"));
    assert!(!requests.iter().any(|it| it.to_string().contains(TOKEN)));
}
