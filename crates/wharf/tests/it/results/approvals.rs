//! Tests that a question about a call shows which stored results the call passes on.

use super::{LINE, TOKEN, call, prepare};
use crate::{
    chat::{agent_file, begin, wait_for},
    serve::server::Server,
};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

#[test]
fn approval_shows_the_results_that_a_call_passes_on() {
    let folder = TempDir::new().expect("a folder");
    let tools = prepare(folder.path(), "");
    let passing = json!({ "text": "wharf://results/r-1" });
    let model = ScriptedModel::start(vec![
        call("c1", "maker__text", &json!({ "bytes": 100_000 })),
        call("c2", "keeper__keep", &passing),
        Reply::text(Wire::Chat, "Done."),
    ]);
    let rules = "approval: {allow: ['maker:*'], ask: ['keeper:*'], after_untrusted: allow}\n";
    let file = agent_file(&model, &format!("{rules}{tools}"));
    fs::write(folder.path().join("agent.yaml"), file).expect("a file");
    let settings = folder.path().join("wharf.toml").display().to_string();
    let variables = [("MODEL_KEY", "key-of-the-model"), ("TOKEN", TOKEN)];
    let server = Server::start_with(folder, &["--settings", &settings], &variables);

    let _stream = begin(&server, &server.token, &json!({ "message": "Go", "on_disconnect": "continue" }));
    let question =
        wait_for("the question", || server.ask("GET", "/api/v1/approvals", None).1["items"].get(0).cloned());
    assert_eq!(question["arguments"], passing, "{question}");
    // The text is passed as a JSON string.
    let text = LINE.repeat(100_000 / LINE.len() + 1);
    let passed = json!([{ "id": "r-1", "pointer": "", "bytes": Value::from(text).to_string().len() }]);
    assert_eq!(question["passed"], passed, "{question}");
}
