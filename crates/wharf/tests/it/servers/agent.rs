//! Tests `wharf run` with real servers and a scripted model.

use super::workspace::Workspace;
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::json;

const FILESYSTEM: &str = include_str!("../config/good/s2-example-1-filesystem.yaml");

#[tokio::test]
async fn time_and_filesystem_servers_work_through_the_agent() {
    let clock =
        "  - {name: clock, description: The time, type: mcp, server: mcp-server-time, command: uvx}\n";
    for wire in [Wire::Anthropic, Wire::Ollama] {
        let note = "note.txt";
        let workspace = Workspace::with("");
        let (_, output) = (workspace.make_folder("data"), workspace.make_folder("output"));
        let write = json!({ "path": output.join(note), "content": "Grüße" }).to_string();
        let time = r#"{"timezone":"Europe/Berlin"}"#;
        let model = ScriptedModel::start(vec![
            Reply::calls(
                wire,
                &[("c1", "clock__get_current_time", time), ("c2", "files__write_file", &write)],
            ),
            Reply::text(wire, "Done."),
        ]);
        let provider = if wire == Wire::Ollama { "ollama" } else { "anthropic" };
        let head = format!("model: {{provider: {provider}, name: m, endpoint: '{}'}}\n", model.url());
        std::fs::write(workspace.path("agent.yaml"), head + FILESYSTEM.trim_end() + "\n" + clock)
            .expect("a file");
        let run =
            workspace.wharf_with(&["run", "Hi", "--allow", "files:write_file", "--allow", "clock:*"]).await;
        run.check(0, "Done.");
        assert_eq!(std::fs::read_to_string(output.join(note)).expect("the file"), "Grüße");
        let results = model.requests()[1].body.to_string();
        assert!(results.contains("Europe/Berlin") && results.contains("Successfully wrote"), "{results}");
        workspace.assert_nothing_left();
    }
}
