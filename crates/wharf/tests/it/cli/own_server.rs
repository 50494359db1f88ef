//! An agent file with one server of ours, which is a script.

use super::Place;
use crate::servers::place::program;
use std::fs;

const SERVER: &str = include_str!("server.py");

/// The server is called `own`; what it receives is in the file `log`.
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
