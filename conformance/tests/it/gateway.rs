//! Runs a gateway in front of a server for a test: `wharf serve`, or `wharf serve` in front of `wharf stdio`.

use crate::server::{SERVER, Server};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub(crate) struct Gateway {
    child: Child,
    pub(crate) url: String,
    _server: Option<Server>,
    _folder: TempDir,
}

/// Number of gateways between the suite and the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hops {
    One,
    Two,
}

impl Gateway {
    /// Starts the gateway and our server with these arguments.
    pub(crate) fn start(arguments: &[&str], hops: Hops) -> Gateway {
        let server = Server::start(arguments);
        let near = format!(r#"transport: http, url: "{}""#, server.url);
        let mut gateway = match hops {
            Hops::One => Gateway::in_front_of(&near),
            Hops::Two => Gateway::in_front_of_stdio(&near),
        };
        gateway._server = Some(server);
        gateway
    }

    /// Starts the gateway in front of one server, given as members of an entry of `tools:`. Tools keep their names.
    pub(crate) fn in_front_of(entry: &str) -> Gateway {
        Gateway::serve(tempfile::tempdir().expect("a folder"), entry)
    }

    /// Starts the gateway in front of `wharf stdio`, which is in front of the server.
    pub(crate) fn in_front_of_stdio(entry: &str) -> Gateway {
        let folder = tempfile::tempdir().expect("a folder");
        let near = folder.path().join("near.yaml");
        fs::write(&near, agent(entry)).expect("the folder can be written to");
        let start = format!(r#"command: {:?}, args: [stdio, -f, {near:?}]"#, wharf());
        Gateway::serve(folder, &start)
    }

    fn serve(folder: TempDir, entry: &str) -> Gateway {
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("the folder can be written to");
            path
        };
        let agent = file("agent.yaml", &agent(entry));
        let settings = file("wharf.toml", &format!("[grants]\ncommands = [{:?}]\n", wharf()));
        let mut command = Command::new(wharf());
        command.args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--settings"]).arg(settings);
        command.arg("-f").arg(agent).current_dir(folder.path());
        // Keeps the state of both gateways in this folder.
        command.env("HOME", folder.path()).env("WHARF_HOME", folder.path().join("home"));
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the gateway starts");
        let url = address(&mut child);
        Gateway { child, url, _server: None, _folder: folder }
    }
}

impl Drop for Gateway {
    /// Sends SIGTERM, so that the gateway can stop its servers; after SIGKILL they would get no signal from it.
    fn drop(&mut self) {
        let terminated = Command::new("kill").arg(self.child.id().to_string()).status();
        if !terminated.is_ok_and(|it| it.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn agent(how: &str) -> String {
    let entry = "name: up, type: mcp, server: up, description: under test";
    format!("name: conformance\ntools:\n  - {{ {entry}, prefix: \"\", {how} }}\n")
}

fn address(child: &mut Child) -> String {
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut lines = stdout.lines().map_while(Result::ok);
    let line = lines.find_map(|line| line.strip_prefix("MCP ").map(|it| it.trim().to_owned()));
    line.expect("the gateway says where it is")
}

/// Returns the path of `wharf`, which cargo puts beside our server when it builds the workspace.
fn wharf() -> PathBuf {
    let program = Path::new(SERVER).with_file_name("wharf");
    let missing = "is missing: run `cargo xtask test`, or `cargo build --package wharf`";
    assert!(program.is_file(), "`{}` {missing}", program.display());
    program
}
