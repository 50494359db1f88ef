//! Runs our server for a test and stops it on drop.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");

pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Server {
        Server::spawn(Command::new(SERVER).args(arguments))
    }

    /// Starts a server that prints its URL as its first line.
    pub(crate) fn spawn(command: &mut Command) -> Server {
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the server starts");
        let mut url = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut url).expect("the server says where it is");
        Server { child, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
