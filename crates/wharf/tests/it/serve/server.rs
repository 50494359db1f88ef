//! A gateway process for each test, and raw HTTP requests to it.

use super::unavailable_servers::STEP_TIMEOUT;
use serde_json::Value;
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A running gateway, stopped on drop.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) folder: TempDir,
}

/// Action of the client after it has sent its request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterSending {
    /// Waits for the response.
    Stay,
    /// Closes its sending side.
    Stop,
}

impl Server {
    /// Starts the gateway in an empty folder, on a free port.
    pub(crate) fn start(args: &[&str]) -> Server {
        Server::start_in(TempDir::new().expect("a folder"), args)
    }

    pub(crate) fn start_in(folder: TempDir, args: &[&str]) -> Server {
        Server::start_with(folder, args, &[])
    }

    pub(crate) fn start_with(folder: TempDir, args: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut command = wharf(&folder);
        command.envs(variables.iter().copied());
        Server::start_command(folder, command, args)
    }

    /// Starts the gateway with this command and these arguments after `serve`.
    pub(crate) fn start_command(folder: TempDir, mut command: Command, args: &[&str]) -> Server {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("log")).expect("a log"))
            .spawn()
            .expect("the program starts");
        let mut said = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut lines = || {
            let mut line = String::new();
            said.read_line(&mut line).expect("a line");
            line
        };
        let (rest, mcp) = (lines(), lines());
        let address = mcp.trim().strip_prefix("MCP   http://").and_then(|it| it.strip_suffix("/mcp"));
        let address = address.unwrap_or_else(|| panic!("no address in {rest:?} {mcp:?}")).to_owned();
        let token = fs::read_to_string(folder.path().join("home/token")).unwrap_or_default();
        Server { child, address, token, folder }
    }

    /// Sends a request with the token. Returns status and body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let token = format!("Authorization: Bearer {}", self.token);
        self.ask_with(method, path, &[&token, "Content-Type: application/json"], body)
    }

    pub(crate) fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: Option<&Value>,
    ) -> (u16, Value) {
        let answer = self.raw(method, path, headers, body);
        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// Sends a GET request with the token and returns the response as text.
    pub(crate) fn text(&self, path: &str) -> String {
        self.raw("GET", path, &[&format!("Authorization: Bearer {}", self.token)], None)
    }

    pub(crate) fn raw(&self, method: &str, path: &str, headers: &[&str], body: Option<&Value>) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        let body = body.map(Value::to_string).unwrap_or_default();
        let host = if headers.iter().any(|it| it.starts_with("Host:")) {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let headers: String = headers.iter().map(|it| format!("{it}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// Sends bytes verbatim and returns the response until the connection closes or the timeout expires.
    pub(crate) fn send(&self, bytes: &[u8], then: AfterSending) -> String {
        self.send_and_see(bytes, then).0
    }

    /// Sends bytes verbatim. Returns the response and whether the connection closed.
    pub(crate) fn send_and_see(&self, bytes: &[u8], then: AfterSending) -> (String, bool) {
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let mut writer = stream.try_clone().expect("a second end");
        let bytes = bytes.to_vec();
        // Writes in a thread, because the server may respond before it has read everything.
        let writing = thread::spawn(move || {
            let _ = writer.write_all(&bytes);
            if then == AfterSending::Stop {
                let _ = writer.shutdown(Shutdown::Write);
            }
        });
        let mut answer = Vec::new();
        let mut piece = [0; 4_096];
        let is_closed = loop {
            match stream.read(&mut piece) {
                Ok(read @ 1..) => answer.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break false,
                // A connection closed during a write may appear as an error.
                Ok(0) | Err(_) => break true,
            }
        };
        writing.join().expect("it was written, or refused");
        (String::from_utf8_lossy(&answer).into_owned(), is_closed)
    }

    /// Returns the log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("a log")
    }

    /// Waits until the log contains this text, and returns the log. It is written asynchronously.
    pub(crate) fn log_with(&self, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let log = self.log();
            if log.contains(words) {
                return log;
            }
            assert!(begun.elapsed() < STEP_TIMEOUT, "no {words:?} in {log}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the process to exit and returns its folder.
    pub(crate) fn into_folder(mut self) -> TempDir {
        let _ = self.child.wait();
        let empty = TempDir::new().expect("a folder");
        std::mem::replace(&mut self.folder, empty)
    }

    pub(crate) fn terminate(mut self) -> Option<i32> {
        self.send_term();
        self.child.wait().expect("it ends").code()
    }

    /// Sends SIGTERM and does not wait.
    pub(crate) fn send_term(&self) {
        let pid = self.child.id().cast_signed();
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds a command for the program with the usual umask.
pub(crate) fn wharf(folder: &TempDir) -> Command {
    wharf_after(folder, "umask 022")
}

/// Builds a command for the program, run by a shell that executes `first` before.
pub(crate) fn wharf_after(folder: &TempDir, first: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("{first}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_wharf")]);
    command.current_dir(folder.path()).env("WHARF_HOME", folder.path().join("home"));
    command
}
