//! Schemathesis makes up requests from `/openapi.json` and compares what comes back with what is described.

use crate::serve::server::Server;
use std::{fs, path::PathBuf, process::Command};

/// What it tries, and where we disagree with it.
const SETTINGS: &str = include_str!("schemathesis.toml");

/// What its settings leave out, and where it reads the description, which it does not try.
const LEFT_OUT: [&str; 6] = ["/openapi.json", "/mcp", "/sse", "/messages", "/ws", "/api/v1/events"];

#[test]
fn the_description_is_true() {
    let tools = std::env::var_os("WHARF_TOOLS").map(PathBuf::from);
    let tools = tools.expect("WHARF_TOOLS names the folder of tools: run `cargo xtask test`");
    let program = tools.join("schemathesis/bin/schemathesis");
    assert!(program.exists(), "there is no {}: run `cargo xtask test`", program.display());
    let server = Server::start(&[]);
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
    // All that it was to try, and not one of them skipped.
    let (_, document) = server.ask("GET", "/openapi.json", None);
    let paths = document["paths"].as_object().expect("paths").iter();
    let tried = paths.filter(|(path, _)| !LEFT_OUT.contains(&path.as_str()));
    let count: usize = tried.map(|(_, methods)| methods.as_object().map_or(0, serde_json::Map::len)).sum();
    assert!(said.contains(&format!("Tested: {count}\n")), "not all of {count}: {said}");
}
