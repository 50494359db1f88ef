//! Tests `wharf run` with a real model: SmolLM2-135M behind llama.cpp's server.

use super::workspace::{Workspace, tool};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// The model is too small to choose, so it gets one tool and an example. Its server forces the call.
const AGENT: &str = r#"
instructions:
  inline: >-
    Write JSON only. If the user says: Add a todo: call Ada, you write:
    {"name": "todo__create_todo", "arguments": {"title": "call Ada"}}
context: {preamble: false}
limits: {max_turns: 1}
approval: {deny: ["todo:list_*", "todo:update_*", "todo:delete_*", "todo:search_*"]}
tools:
  - {name: todo, description: Things to do, type: mcp, server: "builtin:todo"}
"#;

/// A running model. Ends when it is dropped, because its input ends then.
struct LlamaServer {
    child: Child,
    url: String,
}

impl LlamaServer {
    fn start() -> LlamaServer {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/servers/fixtures/llama.py");
        let mut command = Command::new(tool("llama/bin/python"));
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("python starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let url = lines.find(|line| line.starts_with("http://")).expect("the address of the model");
        LlamaServer { child, url }
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_real_model_creates_a_todo() {
    let model = LlamaServer::start();
    let head = format!(
        "model: {{provider: openai, name: smollm2, endpoint: '{}/v1', temperature: 0, max_tokens: 150, \
         context_window: 4096, extra: {{stream_options: {{include_usage: true}}}}}}",
        model.url
    );
    let workspace = Workspace::with(&(head + AGENT));
    let run = workspace.wharf_with(&["run", "Add a todo: buy milk", "--json"]).await;
    run.check(1, "limit_reached");
    let document: Value = serde_json::from_str(&run.stdout).expect("a document");
    assert_eq!(document["tools_called"][0], "todo__create_todo", "{document}");
    assert_eq!(document["tool_calls"][0]["status"], "success", "{document}");
    assert_eq!(document["usage"]["estimated"], Value::Null, "llama.cpp reports what was used: {document}");
    let todos = workspace.wharf("call list_todos --json").await;
    let title = &document["tool_calls"][0]["parameters"]["title"];
    todos.check(0, title.as_str().unwrap_or("a title"));
}
