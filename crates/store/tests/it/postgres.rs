//! A PostgreSQL server for tests, on a free port, with its data in a temporary folder.
//!
//! It stops with the test process, however that ends: a shell beside the server waits until its stdin closes, and
//! only this process holds the other end.

#![expect(clippy::disallowed_methods, reason = "tests find their tools where the environment says")]

use std::{
    env, fs, io,
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread::{self, JoinHandle},
};
use tempfile::TempDir;

/// PostgreSQL refuses to run as root; this unprivileged user exists on every system.
const NOBODY: u32 = 65534;

const READY: &str = "database system is ready to accept connections";

/// Number of attempts, because another process may take the port before the server listens.
const TRIES: usize = 5;

const SERVE_UNTIL_EOF: &str = r#""$@" <&- & server=$!; read -r _; kill -s INT "$server"; wait "$server""#;

pub(crate) struct Postgres {
    running: Option<Running>,
    port: u16,
    folder: TempDir,
}

/// The server process, stopped on drop.
struct Running {
    shell: Child,
    lifeline: Option<ChildStdin>,
    drained: Option<JoinHandle<()>>,
}

impl Postgres {
    /// Creates a database cluster and serves it. `fsync` stays on, as in production.
    pub(crate) fn start() -> Postgres {
        let programs = programs();
        let folder = TempDir::new().expect("a folder");
        if fs::metadata(folder.path()).expect("a folder").uid() == 0 {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("the folder can be given away");
        }
        let data = folder.path().join("data");
        fs::write(folder.path().join("password"), "pass word").expect("a file");
        let made = run(&folder, &programs.join("initdb"))
            .args(["--username=wharf", "--auth=scram-sha-256", "--pwfile=password", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(&data)
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let mut server = Postgres { running: None, port: 0, folder };
        let mut error = String::new();
        for _ in 0..TRIES {
            server.port = free_port();
            match server.start_again() {
                Ok(()) => return server,
                Err(said) => error = said,
            }
        }
        panic!("PostgreSQL does not start on any of {TRIES} ports: {error}");
    }

    /// Stops the server and keeps its data.
    pub(crate) fn stop(&mut self) {
        self.running = None;
    }

    /// Restarts the server with the same data and port. The error is the server's log.
    pub(crate) fn start_again(&mut self) -> Result<(), String> {
        self.running = Some(serve(&mut shell(&self.folder, self.port))?);
        Ok(())
    }

    pub(crate) fn address(&self) -> String {
        format!("postgres://wharf:pass%20word@127.0.0.1:{}/postgres", self.port)
    }
}

/// Returns the folder of the server's files.
impl AsRef<Path> for Postgres {
    fn as_ref(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        _ = self.shell.wait();
        _ = self.drained.take().map(JoinHandle::join);
    }
}

/// Builds a command that runs in this folder as the folder's owner.
fn run(folder: &TempDir, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder.path()).env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin");
    if fs::metadata(folder.path()).expect("a folder").uid() == NOBODY {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Builds the command that serves the data in this folder.
fn shell(folder: &TempDir, port: u16) -> Command {
    let mut shell = run(folder, Path::new("/bin/sh"));
    shell.args(["-c", SERVE_UNTIL_EOF, "sh"]).arg(programs().join("postgres"));
    shell.arg("-D").arg(folder.path().join("data"));
    shell.args(["-p", &port.to_string(), "-c", "unix_socket_directories="]);
    shell.args(["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=100"]);
    shell
}

/// Starts the server and waits until it is ready. The error is its log.
fn serve(shell: &mut Command) -> Result<Running, String> {
    let shell = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell starts");
    let lifeline = shell.stdin.take().expect("a pipe");
    let mut log = BufReader::new(shell.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains(READY) {
        // The server logs FATAL before it exits, while the shell would wait forever. A client that connects too
        // early also causes a FATAL line, which is ignored.
        let has_failed = said.lines().any(|it| it.contains("FATAL") && !it.contains("is starting up"));
        if has_failed || log.read_line(&mut said).unwrap_or(0) == 0 {
            drop(lifeline);
            _ = shell.wait();
            return Err(said);
        }
    }
    let drained = thread::spawn(move || _ = io::copy(&mut log, &mut io::sink()));
    Ok(Running { shell, lifeline: Some(lifeline), drained: Some(drained) })
}

/// Returns the folder of the PostgreSQL programs.
fn programs() -> PathBuf {
    let remedy = "run `cargo xtask provision`, which sets up what the tests need";
    let tools = env::var_os("WHARF_TOOLS").unwrap_or_else(|| panic!("WHARF_TOOLS is not set: {remedy}"));
    let programs = Path::new(&tools).join("postgres/bin");
    // The programs look for their other files relative to their real path.
    programs.canonicalize().unwrap_or_else(|error| panic!("`{}`: {error}: {remedy}", programs.display()))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
