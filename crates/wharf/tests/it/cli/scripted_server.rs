//! Sets up an agent file with one scripted test server.

use super::CliWorkspace;
use crate::servers::workspace::program;
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

const SERVER: &str = include_str!("server.py");

/// Sets up the server as a child process named `own`. It logs everything it receives to the file `log`.
pub(super) fn workspace_with_server() -> CliWorkspace {
    let python = program("python3").canonicalize().expect("a path");
    let (python, workspace) = (python.display().to_string(), CliWorkspace::new());
    workspace.write("server.py", SERVER);
    let (script, log) = (workspace.path("server.py"), workspace.path("log"));
    workspace.write(
        "agent.yaml",
        format!(
            "tools:\n  - name: own\n    description: A server of ours\n    type: mcp\n    server: own\n    \
             command: {python}\n    args: [{}]\n    env: {{LOG: {}}}\n",
            script.display(),
            log.display(),
        ),
    );
    fs::create_dir(workspace.path("state")).expect("a folder");
    workspace.write("state/wharf.toml", format!("[grants]\ncommands = [\"{python}\"]\n"));
    let state = workspace.path("state").display().to_string();
    workspace.set("WHARF_HOME", &state).set("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// Sets up the server over HTTP, already running.
pub(super) fn workspace_with_http_server() -> (CliWorkspace, Child) {
    let workspace = CliWorkspace::new();
    workspace.write("server.py", SERVER);
    let mut server = workspace
        .command(&program("python3"))
        .arg(workspace.path("server.py"))
        .arg("http")
        .env("LOG", workspace.path("log"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut port = String::new();
    BufReader::new(server.stdout.take().expect("a pipe")).read_line(&mut port).expect("its port");
    let port = port.trim();
    workspace.write(
        "agent.yaml",
        format!(
            "tools:\n  - name: own\n    description: A server of ours\n    type: mcp\n    server: own\n    \
             transport: http\n    url: http://127.0.0.1:{port}/mcp\n"
        ),
    );
    (workspace, server)
}
