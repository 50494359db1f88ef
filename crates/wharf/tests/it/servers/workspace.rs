//! A folder with an agent file, in which the program runs with the tools that servers need.

#![expect(
    clippy::disallowed_methods,
    reason = "real servers need the operator's own PATH, and the tools beside it"
)]

use serde_json::Value;
use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

/// Timeout for each command, including the first start of a server.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// Time that processes get to exit.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Workspace {
    folder: TempDir,
    path: OsString,
    variables: Vec<(String, String)>,
}

/// Output and exit code of the program.
#[derive(Debug)]
pub(crate) struct RunOutput {
    typed: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workspace {
    pub(crate) fn with(agent_file: &str) -> Workspace {
        let folder = TempDir::new().expect("a folder");
        fs::create_dir(folder.path().join("scratch")).expect("a folder");
        fs::write(folder.path().join("agent.yaml"), agent_file).expect("the file can be written");
        Workspace { folder, path: path_with([]), variables: Vec::new() }
    }

    /// Creates a workspace with a server written in Python, called `own`. Its variable TOKEN has the value of `SECRET`. `head`
    /// precedes `tools:`.
    pub(crate) fn of_python_server(script: &str, secret: &str, head: &str) -> Workspace {
        let python = program("python3").canonicalize().expect("a path").display().to_string();
        let workspace = Workspace::with("").set("SECRET", secret);
        let path = workspace.path("server.py");
        fs::write(&path, script).expect("a file");
        let agent = format!(
            "{head}tools:\n  - name: own\n    description: d\n    type: mcp\n    server: own\n    command: {python}\n    \
             args: [{}]\n    env: {{TOKEN: '${{SECRET}}'}}\n",
            path.display(),
        );
        fs::write(workspace.path("agent.yaml"), agent).expect("a file");
        let settings = workspace.make_folder("state").join("wharf.toml");
        fs::write(settings, format!("[grants]\ncommands = [\"{python}\"]\n")).expect("a file");
        workspace
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Workspace {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts these folders first on `PATH`.
    pub(crate) fn first_on_path<const N: usize>(self, folders: [PathBuf; N]) -> Workspace {
        Workspace { path: path_with(folders), ..self }
    }

    /// Makes this folder the only one on `PATH`.
    pub(crate) fn only_on_path(self, folder: PathBuf) -> Workspace {
        Workspace { path: folder.into(), ..self }
    }

    /// Returns the canonical path, as servers see it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("a path").join(name)
    }

    pub(crate) fn make_folder(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.path(name)).expect("a folder");
        self.path(name)
    }

    /// Runs the program to completion. Arguments are split at spaces.
    pub(crate) async fn wharf(&self, typed: &str) -> RunOutput {
        self.wharf_with(&typed.split_whitespace().collect::<Vec<_>>()).await
    }

    pub(crate) async fn wharf_with(&self, words: &[&str]) -> RunOutput {
        let typed = words.join(" ");
        let output = Command::new(env!("CARGO_BIN_EXE_wharf"))
            .args(words)
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env("WHARF_HOME", self.path("state"))
            .env("TMPDIR", self.path("scratch"))
            .envs(caches())
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(COMMAND_TIMEOUT, output).await;
        let output =
            output.unwrap_or_else(|_| panic!("`wharf {typed}` took longer than {COMMAND_TIMEOUT:?}"));
        let output = output.expect("wharf runs");
        RunOutput {
            typed,
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Checks that no working directory of a server and no process in one is left. Waits a while, because a server
    /// that did not connect in time exits a little later.
    pub(crate) fn assert_nothing_left(&self) {
        let scratch = self.path("state/scratch");
        // The first server creates it.
        let folders: Vec<PathBuf> = fs::read_dir(&scratch)
            .into_iter()
            .flatten()
            .map(|it| it.expect("an entry").path())
            .filter(|it| it.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wharf-")))
            .collect();
        assert!(folders.is_empty(), "left behind: {folders:?}");
        let deadline = Instant::now() + STOP_TIMEOUT;
        loop {
            let running = processes_in(&scratch);
            if running.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "still running: {running:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Returns the command lines of the processes whose working directory is below a folder. Works on Linux only.
fn processes_in(folder: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|it| fs::read_link(it.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .map(|it| fs::read_to_string(it.path().join("cmdline")).unwrap_or_default().replace('\0', " "))
        .collect()
}

impl RunOutput {
    /// Checks the exit code, and that the output contains this text.
    #[track_caller]
    pub(crate) fn check(&self, code: i32, words: &str) {
        let said = self.stdout.contains(words) || self.stderr.contains(words);
        assert!(
            self.code == Some(code) && said,
            "`wharf {}` should exit with {code} and print {words:?}, but exited with {:?}\n{}{}",
            self.typed,
            self.code,
            self.stdout,
            self.stderr,
        );
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("`wharf {}` printed no JSON: {error}\n{}{}", self.typed, self.stdout, self.stderr)
        })
    }
}

/// Returns the path of a file in the tools folder.
#[track_caller]
pub(crate) fn tool(name: &str) -> PathBuf {
    let remedy = "run `cargo xtask provision`, which sets up what the tests need";
    let folder = env::var_os("WHARF_TOOLS").unwrap_or_else(|| panic!("WHARF_TOOLS is not set: {remedy}"));
    let file = Path::new(&folder).join(name);
    assert!(file.exists(), "there is no `{}`: {remedy}", file.display());
    file
}

/// Builds a `PATH` with npx, node and uvx, and the folders of the current `PATH`.
pub(crate) fn path_with(first: impl IntoIterator<Item = PathBuf>) -> OsString {
    let tools = [tool("python/bin"), tool("node/node_modules/.bin")];
    let own = env::var_os("PATH").unwrap_or_default();
    let folders = first.into_iter().chain(tools).chain(env::split_paths(&own));
    env::join_paths(folders).expect("a PATH")
}

/// Returns variables that make npx and uvx use the provisioned caches offline, so that no test waits for a registry.
pub(crate) fn caches() -> [(&'static str, PathBuf); 4] {
    [
        ("NPM_CONFIG_CACHE", tool("npx")),
        ("NPM_CONFIG_PREFER_OFFLINE", "true".into()),
        ("UV_CACHE_DIR", tool("uvx")),
        ("UV_OFFLINE", "1".into()),
    ]
}

/// Returns the path of a program that must be installed.
#[track_caller]
pub(crate) fn program(name: &str) -> PathBuf {
    let path = path_with([]);
    let found = env::split_paths(&path).map(|it| it.join(name)).find(|it| it.is_file());
    found.unwrap_or_else(|| {
        panic!("there is no `{name}` on PATH: `cargo xtask provision` sets up what the tests need")
    })
}
