//! Runs the gateway under Callgrind and calls a tool through it.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::echo_server::TEXT;
use super::http_message::HttpMessage;
use crate::failure::Failure;

/// Token of the gateway. It protects nothing.
const TOKEN: &str = "a-token-that-everybody-may-know-0123456789";

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"xtask","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

/// Longest life of the gateway in seconds. Then it is killed, and its calls fail.
const MAX_LIFE_SECONDS: &str = "120";

/// How long the gateway may take to list the tool of its server.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the gateway may take to answer.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Name of the profile of the first thread, which serves the calls.
const PROFILE: &str = "profile-01";

/// Configuration of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewaySetup {
    /// Nothing but its server.
    Plain,
    /// A lock that is enforced.
    Locked,
}

/// Starts the gateway in `folder`, makes this many calls, one after the other, and returns the profile of its thread.
pub(super) fn profile_calls(
    program: &Path,
    folder: &Path,
    port: u16,
    calls: u64,
    setup: GatewaySetup,
) -> Result<String, Failure> {
    let run = || -> io::Result<String> {
        configure(folder, port)?;
        if setup == GatewaySetup::Locked {
            lock(program, folder)?;
        }
        let (mut gateway, address) = start(program, folder)?;
        let called = Client::connect(&address).and_then(|mut client| client.call(calls));
        let ended = stop(&mut gateway);
        called.and(ended)?;
        fs::read_to_string(folder.join(PROFILE))
    };
    run().map_err(|error| {
        let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
        let last = log.lines().rev().find(|line| !line.starts_with("==")).unwrap_or_default().to_owned();
        Failure::new(format!("the gateway under Callgrind failed: {error}"))
            .hint(format!("its log ends: {last}"))
    })
}

fn configure(folder: &Path, port: u16) -> io::Result<()> {
    let agent = format!(
        "tools:\n  - name: up\n    description: echo\n    type: mcp\n    server: up\n    prefix: \"\"\n    \
         transport: http\n    url: \"http://127.0.0.1:{port}/mcp\"\n"
    );
    fs::write(folder.join("agent.yaml"), agent)?;
    fs::write(folder.join("wharf.toml"), "[server]\nthreads = 1\n")
}

/// Locks the server, which the gateway then enforces.
fn lock(program: &Path, folder: &Path) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(["lock", "--quiet"]).current_dir(folder).env("WHARF_HOME", folder.join("home"));
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`wharf lock` ended with {status}"))) }
}

fn start(program: &Path, folder: &Path) -> io::Result<(Child, String)> {
    let mut gateway = Command::new("timeout")
        .args(["--signal=KILL", MAX_LIFE_SECONDS, "valgrind", "--tool=callgrind", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", folder.join("profile").display()))
        .arg(program)
        .args(["serve", "--listen", "127.0.0.1:0", "--settings", "wharf.toml"])
        .current_dir(folder)
        .env("WHARF_HOME", folder.join("home"))
        .env("WHARF_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(folder.join("log"))?)
        .spawn()?;
    let stdout = gateway.stdout.take().ok_or_else(|| io::Error::other("it has no stdout"))?;
    let address = BufReader::new(stdout)
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("http://")?.1.split_once("/mcp")?.0.to_owned()));
    match address {
        Some(address) => Ok((gateway, address)),
        None => {
            let _ = gateway.kill();
            let status = gateway.wait()?;
            Err(io::Error::other(format!("it printed no address: {status}")))
        }
    }
}

/// Asks the gateway to end, and waits for it; `timeout` passes the signal on.
fn stop(gateway: &mut Child) -> io::Result<()> {
    Command::new("kill").arg(gateway.id().to_string()).status()?;
    let status = gateway.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

/// A client with one connection and one session.
struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    /// First line and headers of all requests.
    head: String,
}

impl Client {
    /// Opens a session, and waits until the gateway lists the tool.
    fn connect(address: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let reader = BufReader::new(stream.try_clone()?);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        );
        let mut client = Client { stream, reader, head };
        let initialized = client.post(INITIALIZE)?;
        let session = initialized.header("mcp-session-id").unwrap_or_default();
        client.head += &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n");
        let until = Instant::now() + LIST_TIMEOUT;
        while !client.post(LIST)?.body.contains(r#""name":"echo""#) {
            if Instant::now() > until {
                return Err(io::Error::other("it does not list the tool of its server"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(client)
    }

    /// Calls the tool this many times, and waits for each answer.
    fn call(&mut self, times: u64) -> io::Result<()> {
        for id in 0..times {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{TEXT}"}}}}}}"#,
                id + 2
            );
            let answer = self.post(&call)?.body;
            if !answer.contains(TEXT) {
                return Err(io::Error::other(format!("a call was answered with: {answer}")));
            }
        }
        Ok(())
    }

    fn post(&mut self, body: &str) -> io::Result<HttpMessage> {
        let request = format!("{}content-length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.write_all(request.as_bytes())?;
        HttpMessage::read(&mut self.reader)?.ok_or_else(|| io::Error::other("it closed the connection"))
    }
}
