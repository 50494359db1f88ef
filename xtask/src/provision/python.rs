//! Installs PyPI packages in a virtual environment, and fills the uvx cache with the servers that tests start, so
//! that no test waits for a download.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::system;
use crate::checkout;
use crate::failure::Failure;

const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };
const PROGRAMS: &str = if cfg!(windows) { "Scripts" } else { "bin" };

pub(super) fn install(folder: &Path, packages: &[&str]) -> Result<(), Failure> {
    if !system::succeeds(Command::new(PYTHON).args(["-c", "import ensurepip, venv"])) {
        system::install(&["python3-venv"])?;
    }
    checkout::run(Command::new(PYTHON).args(["-m", "venv"]).arg(folder))?;
    let quiet_install = ["install", "--quiet", "--disable-pip-version-check"];
    checkout::run(Command::new(folder.join(PROGRAMS).join("pip")).args(quiet_install).args(packages))
}

/// Returns the interpreter of a virtual environment.
pub(super) fn interpreter(folder: &Path) -> PathBuf {
    folder.join(PROGRAMS).join("python")
}

/// Fills a uvx cache by running each server with `--help`. uvx comes from the neighbouring folder `environment`.
pub(super) fn fill_cache(folder: &Path, environment: &str, servers: &[&str]) -> Result<(), Failure> {
    let uvx: PathBuf = folder.with_file_name(environment).join(PROGRAMS).join("uvx");
    for server in servers {
        let mut command = Command::new(&uvx);
        command.env("UV_CACHE_DIR", folder).args([server, "--help"]).stdout(std::process::Stdio::null());
        checkout::run(&mut command)?;
    }
    Ok(())
}

/// Fills a uvx cache without running the servers, because some do not exit after `--help`.
pub(super) fn fill_servers(folder: &Path, environment: &str, servers: &[&str]) -> Result<(), Failure> {
    let programs = folder.with_file_name(environment).join(PROGRAMS);
    for server in servers {
        let mut words = server.split(' ');
        let mut command = Command::new(programs.join("uvx"));
        command.env("UV_CACHE_DIR", folder).env("UV_PYTHON", programs.join("python"));
        command.args(["--quiet", "--from"]).args(words.next());
        command.args(words.flat_map(|with| ["--with", with]));
        checkout::run(command.args(["python", "-c", ""]))?;
    }
    Ok(())
}
