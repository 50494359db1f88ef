//! The gateway for client tests, with two servers. Concurrent tests share one.

use super::Transport;
use crate::servers::workspace::{caches, path_with};
use serde_json::{Map, Value};
use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tempfile::TempDir;

const WHARF: &str = env!("CARGO_BIN_EXE_wharf");

pub(super) const TOKEN: &str = "a-token-for-strangers";

const AGENT_FILE: &str = "\
tools:
  - {name: todo, description: d, type: mcp, server: 'builtin:todo'}
  - {name: everything, description: d, type: mcp, server: '@modelcontextprotocol/server-everything', command: npx}
";

static SHARED: Mutex<Weak<TestGateway>> = Mutex::new(Weak::new());

/// A running `wharf serve`, stopped on drop.
pub(super) struct TestGateway {
    child: Child,
    address: String,
    folder: TempDir,
}

/// Target of a client, and its environment.
pub(super) struct Target {
    pub(super) transport: Transport,
    /// A URL, or a program and its arguments.
    pub(super) words: Vec<String>,
    /// State folder of a server that the client starts.
    pub(super) home: TempDir,
}

impl TestGateway {
    pub(super) fn shared() -> Arc<TestGateway> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let test_gateway = Arc::new(TestGateway::open());
            *shared = Arc::downgrade(&test_gateway);
            test_gateway
        })
    }

    /// Starts a gateway that is not shared.
    pub(super) fn open() -> TestGateway {
        TestGateway::with(AGENT_FILE)
    }

    pub(super) fn with(agent_file: &str) -> TestGateway {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("agent.yaml"), agent_file).expect("the file can be written");
        let mut command = Command::new(WHARF);
        command.current_dir(folder.path()).args(["serve", "--listen", "127.0.0.1:0"]);
        let mut child = with_environment(&mut command, folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let said = BufReader::new(child.stdout.take().expect("its stdout"));
        let address = said.lines().find_map(|line| {
            let line = line.expect("a line");
            line.strip_prefix("MCP   http://")?.strip_suffix("/mcp").map(str::to_owned)
        });
        TestGateway { child, address: address.expect("the gateway says where it is"), folder }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Restarts the session of a source through the REST API.
    pub(super) fn restart(&self, source: &str) {
        let head = format!("POST /api/v1/connections/{source}/restart HTTP/1.1\r\nHost: {}", self.address);
        let head = format!("{head}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close");
        let request = format!("{head}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}");
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    pub(super) fn agent_file(&self) -> String {
        self.folder.path().join("agent.yaml").display().to_string()
    }

    pub(super) fn target(&self, transport: Transport) -> Target {
        let address = &self.address;
        let file = self.agent_file();
        let words = match transport {
            Transport::Http => vec![format!("http://{address}/mcp")],
            Transport::Sse => vec![format!("http://{address}/sse")],
            Transport::WebSocket => vec![format!("ws://{address}/ws")],
            Transport::Stdio => [WHARF, "--file", &file, "stdio"].map(str::to_owned).into(),
        };
        Target { transport, words, home: TempDir::new().expect("a folder") }
    }
}

impl Target {
    /// Builds the command of a client with its environment.
    pub(super) fn client(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        with_environment(&mut command, self.home.path());
        command
    }

    /// Returns that environment, for a client that needs an explicit list of variables.
    pub(super) fn variables(&self) -> Map<String, Value> {
        let command = self.client("");
        let text = |it: &OsStr| it.to_str().expect("text").to_owned();
        command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?).into()))).collect()
    }
}

/// Sets `PATH`, the caches, the state folder and the token, which clients also read from here.
fn with_environment<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command
        .env("PATH", path_with(Path::new(WHARF).parent().map(Path::to_owned)))
        .envs(caches())
        .env("WHARF_HOME", folder.join("home"))
        .env("WHARF_TOKEN", TOKEN)
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
