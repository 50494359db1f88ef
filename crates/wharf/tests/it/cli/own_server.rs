//! Sets up an agent file with one scripted test server.

use super::Place;
use crate::servers::place::program;
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

const SERVER: &str = include_str!("server.py");

/// Sets up the server as a child process named `own`. It logs everything it receives to the file `log`.
pub(super) fn place_with_server() -> Place {
    let python = program("python3").canonicalize().expect("a path");
    let (python, place) = (python.display().to_string(), Place::new());
    place.write("server.py", SERVER);
    let (script, log) = (place.path("server.py"), place.path("log"));
    place.write(
        "agent.yaml",
        format!(
            "tools:\n  - name: own\n    description: A server of ours\n    type: mcp\n    server: own\n    \
             command: {python}\n    args: [{}]\n    env: {{LOG: {}}}\n",
            script.display(),
            log.display(),
        ),
    );
    fs::create_dir(place.path("state")).expect("a folder");
    place.write("state/wharf.toml", format!("[grants]\ncommands = [\"{python}\"]\n"));
    let state = place.path("state").display().to_string();
    place.set("WHARF_HOME", &state).set("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// Sets up the server over HTTP, already running.
pub(super) fn place_with_http_server() -> (Place, Child) {
    let place = Place::new();
    place.write("server.py", SERVER);
    let mut server = place
        .command(&program("python3"))
        .arg(place.path("server.py"))
        .arg("http")
        .env("LOG", place.path("log"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut port = String::new();
    BufReader::new(server.stdout.take().expect("a pipe")).read_line(&mut port).expect("its port");
    let port = port.trim();
    place.write(
        "agent.yaml",
        format!(
            "tools:\n  - name: own\n    description: A server of ours\n    type: mcp\n    server: own\n    \
             transport: http\n    url: http://127.0.0.1:{port}/mcp\n"
        ),
    );
    (place, server)
}
