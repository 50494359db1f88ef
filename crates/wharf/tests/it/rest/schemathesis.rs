//! Tests the API with Schemathesis, which generates requests from `/openapi.json` and compares the responses with it.

use crate::serve::server::Server;
use scripted_model::{Reply, ScriptedModel, Wire};
use std::{fs, path::PathBuf, process::Command};
use tempfile::TempDir;

/// Configuration of Schemathesis, including the checks we disagree with.
const SETTINGS: &str = include_str!("schemathesis.toml");

/// Paths that the configuration excludes, and the path of the description, which is not tested.
const LEFT_OUT: [&str; 6] = ["/openapi.json", "/mcp", "/sse", "/messages", "/ws", "/api/v1/events"];

#[test]
fn responses_match_the_openapi_document() {
    let tools = std::env::var_os("WHARF_TOOLS").map(PathBuf::from);
    let tools = tools.expect("WHARF_TOOLS names the folder of tools: run `cargo xtask test`");
    let program = tools.join("schemathesis/bin/schemathesis");
    assert!(program.exists(), "there is no {}: run `cargo xtask test`", program.display());
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Hello.")]);
    let folder = TempDir::new().expect("a folder");
    let agent_file = format!(
        "model: {{provider: openai, name: m, endpoint: '{}'}}\ntools:\n  - {{name: todo, description: Todos, type: mcp, \
         server: 'builtin:todo'}}\n",
        model.url()
    );
    fs::write(folder.path().join("agent.yaml"), agent_file).expect("an agent file");
    let server = Server::start_in(folder, &[]);
    let settings = server.folder.path().join("schemathesis.toml");
    fs::write(&settings, SETTINGS).expect("its settings");
    let output = Command::new(program)
        .current_dir(server.folder.path())
        .env("TOKEN", &server.token)
        .args(["--config-file", "schemathesis.toml", "run", "--url"])
        .arg(format!("http://{}", server.address))
        .arg(format!("http://{}/openapi.json", server.address))
        .output()
        .expect("it starts");
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}\n{}", server.log());
    // Schemathesis tested every operation and skipped none.
    let (_, document) = server.ask("GET", "/openapi.json", None);
    let paths = document["paths"].as_object().expect("paths").iter();
    let tried = paths.filter(|(path, _)| !LEFT_OUT.contains(&path.as_str()));
    let count: usize = tried.map(|(_, methods)| methods.as_object().map_or(0, serde_json::Map::len)).sum();
    assert!(said.contains(&format!("Tested: {count}\n")), "not all of {count}: {said}");
}
