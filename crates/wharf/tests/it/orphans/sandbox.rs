//! A folder with one server, the program running there, and the current processes of the server.

use rustix::process::{Pid, Signal, kill_process};
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Stdio, time::Duration};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

/// Timeout for each step, including a complete shutdown.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that processes get to exit after the program ends.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

const WHARF: &str = env!("CARGO_BIN_EXE_wharf");

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/orphans/server.sh");

pub(super) struct Sandbox {
    folder: TempDir,
    mark: String,
}

/// The running program.
pub(super) struct Running(Child);

/// Combined stdout and stderr of the program.
pub(super) struct ProgramOutput(pub(super) String);

impl Sandbox {
    /// Sets up a server of this shape; `server.sh` knows the names.
    pub(super) fn new(shape: &str) -> Sandbox {
        Sandbox::with("/bin/sh", &[SERVER, shape])
    }

    /// Sets up a server that is this program.
    pub(super) fn with(program: &str, args: &[&str]) -> Sandbox {
        let folder = TempDir::new().expect("a folder");
        let mark = folder.path().file_name().expect("a name").to_string_lossy().into_owned();
        let sandbox = Sandbox { folder, mark };
        fs::create_dir(sandbox.path("scratch")).expect("a folder");
        fs::create_dir(sandbox.path("state")).expect("a folder");
        let agent_file = format!(
            "tools:\n  - {{name: it, description: d, type: mcp, server: x, command: '{program}', args: {args:?}, \
             env: {{SANDBOX: '{}'}}}}\n",
            sandbox.mark
        );
        fs::write(sandbox.path("agent.yaml"), agent_file).expect("a file");
        let grants = format!("[grants]\ncommands = [\"{program}\"]\n");
        fs::write(sandbox.path("state/wharf.toml"), grants).expect("a file");
        sandbox
    }

    /// Sets up a fake `docker` that records its arguments and runs the test server.
    pub(super) fn with_fake_docker() -> Sandbox {
        let sandbox = Sandbox::with("docker", &["run", "--rm", "-i", "example/it"]);
        fs::create_dir(sandbox.path("bin")).expect("a folder");
        let docker = sandbox.path("bin/docker");
        let script = format!(
            "#!/bin/sh\necho \"$@\" >>'{}'\n[ $1 != run ] || exec sh '{SERVER}' direct\n",
            sandbox.path("orders").display()
        );
        fs::write(&docker, script).expect("a file");
        fs::set_permissions(docker, fs::Permissions::from_mode(0o755)).expect("it can be run");
        fs::remove_file(sandbox.path("state/wharf.toml")).expect("no grants are needed");
        sandbox
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("a path").join(name)
    }

    /// Runs the program to completion.
    pub(super) async fn wharf(&self, typed: &str) -> ProgramOutput {
        self.finish(self.command(&format!("exec '{WHARF}' {typed}"))).await
    }

    /// Runs the program with an extra descriptor that it must not pass on to servers.
    pub(super) async fn wharf_with_open_descriptor(&self, typed: &str) -> ProgramOutput {
        self.finish(self.command(&format!("exec '{WHARF}' {typed} 7</dev/zero"))).await
    }

    pub(super) fn start(&self, typed: &str) -> Running {
        self.start_program(WHARF, typed)
    }

    /// Starts another program.
    pub(super) fn start_program(&self, program: &str, typed: &str) -> Running {
        let mut command = self.command(&format!("exec '{program}' {typed}"));
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("wharf runs"))
    }

    async fn finish(&self, mut command: Command) -> ProgramOutput {
        let output = timeout(STEP_TIMEOUT, command.output()).await.expect("an end").expect("wharf runs");
        let said = [output.stdout, output.stderr].concat();
        ProgramOutput(String::from_utf8_lossy(&said).into_owned())
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", line])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env("HOME", self.folder.path())
            .env("WHARF_HOME", self.path("state"))
            .env("TMPDIR", self.path("scratch"))
            .env("SESAME", "not for servers")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Returns all processes that have the marker variable, with their command lines.
    pub(super) fn running(&self) -> Vec<(Pid, String)> {
        let mark = format!("SANDBOX={}", self.mark);
        let marked = |environ: Vec<u8>| environ.split(|byte| *byte == 0).any(|it| it == mark.as_bytes());
        let processes = fs::read_dir("/proc").expect("a folder").flatten();
        processes
            .filter(|it| fs::read(it.path().join("environ")).is_ok_and(marked))
            .filter_map(|it| {
                let line = fs::read(it.path().join("cmdline")).unwrap_or_default();
                let pid = Pid::from_raw(it.file_name().to_str()?.parse().ok()?)?;
                Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
            })
            .collect()
    }

    /// Sends a signal to the supervisor of the server.
    pub(super) fn signal_supervisor(&self, signal: Signal) {
        let running = self.running();
        let supervisor = running.iter().find(|(_, line)| line.contains(" __supervise "));
        let (pid, _) = supervisor.expect("a supervisor");
        kill_process(*pid, signal).expect("it runs");
    }

    /// Waits until the server has started all its processes.
    pub(super) async fn wait_for_processes(&self, count: usize) {
        let since = Instant::now();
        while self.running().len() < count {
            assert!(since.elapsed() < STEP_TIMEOUT, "not {count} processes: {:#?}", self.running());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the call has reached the server, which then creates a file in its working directory.
    pub(super) async fn wait_for_call(&self) {
        let since = Instant::now();
        while !self.folders().iter().any(|it| it.join("asked").exists()) {
            assert!(since.elapsed() < STEP_TIMEOUT, "nobody was asked");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the existing working directories.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("state/scratch")).expect("a folder").flatten();
        entries.map(|it| it.path()).filter(|it| it.is_dir()).collect()
    }

    /// Waits until no process is left.
    pub(super) async fn wait_for_no_processes(&self) {
        self.wait_for_at_most(0).await;
    }

    /// Waits until at most this many processes are left.
    pub(super) async fn wait_for_at_most(&self, count: usize) {
        let since = Instant::now();
        loop {
            let left = self.running();
            if left.len() <= count {
                return;
            }
            assert!(since.elapsed() < EXIT_TIMEOUT, "left running: {left:#?}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Running {
    /// Sends a signal, waits for the exit and returns the exit code, if any.
    pub(super) async fn end(&mut self, signal: Signal) -> Option<i32> {
        let pid = self.0.id().and_then(|it| Pid::from_raw(it.try_into().ok()?)).expect("it runs");
        kill_process(pid, signal).expect("it runs");
        self.ended().await
    }

    /// Waits for the exit and returns the exit code, if any.
    pub(super) async fn ended(&mut self) -> Option<i32> {
        timeout(STEP_TIMEOUT, self.0.wait()).await.expect("an end").expect("a status").code()
    }
}

impl ProgramOutput {
    #[track_caller]
    pub(super) fn check(&self, words: &str) {
        assert!(self.0.contains(words), "{words:?} is missing from:\n{}", self.0);
    }
}
