//! Images in results: a model that accepts images is shown them, and any other model gets a handle to pass on.

use crate::replays::echo_workspace;
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::Value;
use std::fs;

/// Runs the agent with a tool that returns an image of 8 KB. Returns the requests to the model.
async fn run(model: &ScriptedModel, images: bool, entry: &str) -> Vec<Value> {
    let url = model.url();
    let head = format!(
        "model: {{provider: openai, name: m, endpoint: '{url}', api_key: k, images: {images}}}\n\
         approval: {{default: allow}}\n"
    );
    let workspace = echo_workspace(&head);
    let file = workspace.path("agent.yaml");
    let text = fs::read_to_string(&file).expect("the agent file");
    fs::write(file, text + entry).expect("the agent file");
    workspace.wharf_with(&["run", "Show me"]).await.check(0, "Done.");
    model.requests().iter().map(|it| it.body.clone()).collect()
}

/// A model that asks for the image and reads the first stored result.
fn model() -> ScriptedModel {
    ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "own__echo", r#"{"path":"picture"}"#)]),
        Reply::calls(Wire::Chat, &[("c2", "wharf__read_result", r#"{"id":"r-1"}"#)]),
        Reply::text(Wire::Chat, "Done."),
    ])
}

/// Returns the content of the result of a call.
fn result<'a>(request: &'a Value, call_id: &str) -> &'a str {
    let mut messages = request["messages"].as_array().expect("messages").iter();
    let found = messages.find(|it| it["tool_call_id"] == call_id);
    found.and_then(|it| it["content"].as_str()).unwrap_or_else(|| panic!("{request}"))
}

/// The beginning of the image in base64.
const BEGINNING: &str = "AAECAwQF";

#[tokio::test]
async fn a_model_without_images_gets_a_handle() {
    let requests = run(&model(), false, "").await;
    assert_eq!(result(&requests[1], "c1"), "[image/png, 8 KB: r-1]");
    assert!(!requests[1].to_string().contains(BEGINNING), "{}", requests[1]);
    assert!(result(&requests[2], "c2").contains(BEGINNING), "{}", requests[2]);
}

#[tokio::test]
async fn a_model_with_images_is_shown_one_that_is_stored() {
    for (entry, line) in
        [("", "[image/png, 8 KB]"), ("    results: {inline_limit: 1024}\n", "[image/png, 8 KB: r-1]")]
    {
        let requests = run(&model(), true, entry).await;
        assert_eq!(result(&requests[1], "c1"), line);
        let shown = requests[1]["messages"].as_array().and_then(|it| it.last()).expect("a message");
        let url = shown["content"][0]["image_url"]["url"].as_str().unwrap_or_else(|| panic!("{shown}"));
        assert!(url.starts_with(&format!("data:image/png;base64,{BEGINNING}")), "{url}");
    }
}
