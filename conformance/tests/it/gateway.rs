//! Runs a gateway in front of our server for a test: `wharf serve`, or `wharf serve` in front of `wharf stdio`.

use crate::server::{SERVER, Server};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub(crate) struct Gateway {
    child: Child,
    pub(crate) url: String,
    _server: Server,
    _folder: TempDir,
}

/// Number of gateways between the suite and the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hops {
    One,
    Two,
}

impl Gateway {
    /// Starts the gateway and our server with these arguments. Tools keep their names.
    pub(crate) fn start(arguments: &[&str], hops: Hops) -> Gateway {
        let server = Server::start(arguments);
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("the folder can be written to");
            path
        };
        let near = format!(r#"transport: http, url: "{}""#, server.url);
        let near = file("agent.yaml", &agent(&near));
        let settings = file("wharf.toml", &format!("[grants]\ncommands = [{:?}]\n", wharf()));
        let agent = match hops {
            Hops::One => near,
            Hops::Two => {
                let start = format!(r#"command: {:?}, args: [stdio, -f, {near:?}]"#, wharf());
                file("far.yaml", &agent(&start))
            }
        };
        let mut command = Command::new(wharf());
        command.args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--settings"]).arg(settings);
        command.arg("-f").arg(agent).current_dir(folder.path());
        // Keeps the state of both gateways in this folder.
        command.env("HOME", folder.path()).env("WHARF_HOME", folder.path().join("home"));
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the gateway starts");
        let url = address(&mut child);
        Gateway { child, url, _server: server, _folder: folder }
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
