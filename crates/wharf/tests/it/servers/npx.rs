//! Tests the most common servers from npm.

use super::workspace::Workspace;
use serde_json::json;

/// The first example of the documentation.
const FILESYSTEM: &str = include_str!("../config/good/s2-example-1-filesystem.yaml");

const MEMORY: &str = "
tools:
  - name: memory
    description: What is to be remembered
    type: mcp
    server: '@modelcontextprotocol/server-memory'
    command: npx
    env: { MEMORY_FILE_PATH: '${workspaceFolder}/memory.jsonl' }
";

#[tokio::test]
async fn filesystem_example_works() {
    let workspace = Workspace::with(FILESYSTEM);
    let (data, output) = (workspace.make_folder("data"), workspace.make_folder("output"));
    let file = format!("path={}", output.join("note.txt").display());
    let write = workspace.wharf_with(&["call", "files__write_file", &file, "content=Grüße, ⚓\n"]).await;
    write.check(0, "Successfully wrote");
    let written = std::fs::read_to_string(output.join("note.txt")).expect("the file");
    assert_eq!(written, "Grüße, ⚓\n");
    let read = workspace.wharf_with(&["call", "read_text_file", &file]).await;
    read.check(0, "Grüße, ⚓\n");

    let allowed = workspace.wharf("call list_allowed_directories").await;
    allowed.check(0, &format!("{}\n{}\n", data.display(), output.display()));
    let outside = workspace.wharf_with(&["call", "read_text_file", "path=/etc/hostname"]).await;
    outside.check(1, "outside allowed directories");
    workspace.assert_nothing_left();
}

#[tokio::test]
async fn memory_server_keeps_its_file_between_calls() {
    let workspace = Workspace::with(MEMORY);
    let entities = json!([{ "name": "wharf", "entityType": "program", "observations": ["docks"] }]);
    let arguments = json!({ "entities": entities }).to_string();
    workspace.wharf_with(&["call", "create_entities", "--args", &arguments]).await.check(0, "\"docks\"");
    let graph = workspace.wharf("call read_graph --json").await;
    graph.check(0, "");
    assert_eq!(
        graph.json()["metadata"]["structured_content"],
        json!({ "entities": entities, "relations": [] })
    );
    workspace.assert_nothing_left();
}
