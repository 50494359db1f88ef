//! Tests the public library API: an agent file by its path, a tool by its name.

use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;
use wharf_runtime::{CallError, LoadError, Runtime, WharfProgram};

const TODO: &str = "tools:\n  - {name: todo, description: Todos, type: mcp, server: 'builtin:todo'}\n";

/// Returns the program that was built for the tests, with its state in this folder.
fn wharf(folder: &Path) -> WharfProgram {
    let program = WharfProgram::at(env!("CARGO_BIN_EXE_wharf"), folder.join("todo"));
    program.variable("WHARF_HOME", folder.join("home").display().to_string())
}

#[tokio::test]
async fn tool_is_called_by_file_and_name() -> Result<(), Box<dyn std::error::Error>> {
    let folder = TempDir::new()?;
    let file = folder.path().join("agent.yaml");
    fs::write(&file, TODO)?;
    let runtime = Runtime::from_file(&file).builtins(wharf(folder.path())).await?;
    let todo = runtime.call("todo__create_todo", json!({ "title": "Milk", "priority": 2 })).await?;
    assert_eq!(todo.json()["title"], "Milk");
    assert_eq!(serde_json::from_str::<Value>(&todo.text())?["priority"], 2);

    let refused = runtime.call("todo__delete_todo", json!({ "todo_id": 4711 })).await;
    assert!(matches!(&refused, Err(CallError::Refused(words)) if words.contains("4711")), "{refused:?}");
    let unknown = runtime.call("todo__create_tood", json!({})).await.expect_err("there is no such tool");
    assert!(unknown.to_string().contains("MCPToolNotFoundError"), "{unknown}");
    runtime.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

#[tokio::test]
async fn load_errors_are_explained() {
    let folder = TempDir::new().expect("a folder");
    let missing = Runtime::from_file(folder.path().join("agent.yaml")).await;
    let missing = missing.expect_err("there is no such file").to_string();
    assert!(missing.contains("agent.yaml' does not exist"), "{missing}");
    let file = folder.path().join("bad.yaml");
    fs::write(&file, TODO.replace("builtin:todo", "builtin:tood")).expect("it can be written");
    let bad = Runtime::from_file(file).await;
    let Err(LoadError::File(diagnostics)) = bad else { panic!("{bad:?}") };
    assert_eq!(diagnostics.items().len(), 1, "{diagnostics:?}");
}
