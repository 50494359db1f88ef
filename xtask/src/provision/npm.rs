//! Packages of npm. The one thing that has to be on the machine is npm itself; where it is missing and we may, it is
//! installed from the system's packages.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::checkout;
use crate::failure::Failure;

const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// Without what only people read: audits, appeals, notices of new versions.
const INSTALL: [&str; 5] = ["install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];

pub(super) fn install(folder: &Path, packages: &[&str]) -> Result<(), Failure> {
    be_there()?;
    // A folder with a manifest is a project, and npm looks for none above it.
    let manifest = folder.join("package.json");
    fs::write(&manifest, "{ \"private\": true }\n").map_err(|error| {
        Failure::new(format!("could not write `{}`: {error}", manifest.display()))
            .hint("make the folder writable and try again")
    })?;
    checkout::run(Command::new(NPM).current_dir(folder).args(INSTALL).args(packages))
}

fn be_there() -> Result<(), Failure> {
    if starts(NPM) {
        return Ok(());
    }
    if !(is_root() && starts("apt-get")) {
        return Err(Failure::new("`npm` is not installed, and some tests need programs from it")
            .hint("install Node.js with npm (Debian: `apt install npm`)"));
    }
    checkout::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    let quietly = ["install", "--yes", "--quiet", "--no-install-recommends", "npm"];
    checkout::run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(quietly))
}

fn starts(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}
