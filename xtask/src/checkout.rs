//! Locates the checkout, its target folder and its test tools, and runs cargo in it. Knows nothing of the tasks.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{self, Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::provision;

pub(crate) struct Checkout {
    root: PathBuf,
    cargo: OsString,
    target: Option<PathBuf>,
    tools: PathBuf,
}

impl Checkout {
    /// Finds the checkout through cargo's environment variables instead of the path xtask was compiled in, because
    /// several checkouts may share one target folder.
    pub(crate) fn find() -> Result<Self, Failure> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = manifest.as_deref().and_then(Path::parent).ok_or_else(|| {
            Failure::new("could not tell where the repository is").hint("start this program as `cargo xtask`")
        })?;
        let target = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
        let target = target.map(|folder| absolute("CARGO_TARGET_DIR", folder)).transpose()?;
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let tools = absolute("WHARF_TOOLS", provision::folder(set)?.into())?;
        Ok(Self { root: root.to_owned(), cargo, target, tools })
    }

    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// Shortens a path to be relative to the root of the checkout.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.target.clone().unwrap_or_else(|| self.path("target"))
    }

    /// Returns the folder of the programs that the tests need.
    pub(crate) fn tools(&self) -> &Path {
        &self.tools
    }

    /// Runs cargo and shows everything it prints.
    pub(crate) fn cargo(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<(), Failure> {
        run(self.cargo_command().args(arguments))
    }

    /// Runs cargo and returns its stdout; stderr is shown.
    pub(crate) fn cargo_stdout(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Vec<u8>, Failure> {
        let mut command = self.cargo_command();
        command.args(arguments).stderr(std::process::Stdio::inherit());
        let line = announce(&command);
        let output = command.output().map_err(|error| could_not_start(&line, &error))?;
        if output.status.success() { Ok(output.stdout) } else { Err(command_failed(&line)) }
    }

    /// Builds a cargo command that runs in the root. Passes an absolute target folder, because the user may have
    /// started xtask in another folder.
    pub(crate) fn cargo_command(&self) -> Command {
        let mut command = Command::new(&self.cargo);
        command.current_dir(&self.root).env("WHARF_TOOLS", &self.tools);
        if let Some(target) = &self.target {
            command.env("CARGO_TARGET_DIR", target);
        }
        command
    }
}

pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let line = announce(command);
    let status = command.status().map_err(|error| could_not_start(&line, &error))?;
    if status.success() { Ok(()) } else { Err(command_failed(&line)) }
}

/// Prints the command line before it runs, and returns it.
pub(crate) fn announce(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words: Vec<_> =
        std::iter::once(program).chain(command.get_args()).map(OsStr::to_string_lossy).collect();
    let line = words.join(" ");
    eprintln!("    {line}");
    line
}

pub(crate) fn could_not_start(line: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not start `{line}`: {error}"))
}

fn command_failed(line: &str) -> Failure {
    Failure::new(format!("`{line}` failed")).hint("see its messages above; run it alone while you fix it")
}

fn absolute(variable: &str, folder: OsString) -> Result<PathBuf, Failure> {
    path::absolute(&folder).map_err(|error| {
        Failure::new(format!("could not make `{variable}` absolute: {error}"))
            .hint("set it to a folder that exists, or unset it")
    })
}
