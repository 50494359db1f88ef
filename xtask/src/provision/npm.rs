//! Packages of npm. The one thing that has to be on the machine is npm itself; where it is missing and we may, it is
//! installed from the system's packages.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::system;
use crate::checkout;
use crate::failure::Failure;

const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };
const NPX: &str = if cfg!(windows) { "npx.cmd" } else { "npx" };

/// A registry that is silent this long, in milliseconds, is asked again. npm itself would wait for five minutes.
const PATIENCE: &str = "--fetch-timeout=20000";

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
    checkout::run(Command::new(NPM).current_dir(folder).args(INSTALL).arg(PATIENCE).args(packages))
}

/// A cache of npx with these packages in it, so that a test which starts one by name does not wait for a download. Their
/// install scripts are not run: some of them download programs that no test needs.
pub(super) fn fill_cache(folder: &Path, packages: &[&str]) -> Result<(), Failure> {
    be_there()?;
    for package in packages {
        let mut command = Command::new(NPX);
        command.current_dir(folder).env("npm_config_cache", folder).args([
            "--yes",
            "--ignore-scripts",
            PATIENCE,
        ]);
        checkout::run(command.args(["--package", package, "--", "node", "--eval", ""]))?;
    }
    Ok(())
}

/// The same for packages that are named with their versions.
pub(super) fn fill_servers(folder: &Path, servers: &[&str]) -> Result<(), Failure> {
    fill_cache(folder, servers)?;
    // A package with its version is taken as it is installed; the archives would double the size of the folder.
    let archives = folder.join("_cacache");
    fs::remove_dir_all(&archives).map_err(|error| {
        Failure::new(format!("could not remove `{}`: {error}", archives.display()))
            .hint("make the folder writable and try again")
    })
}

fn be_there() -> Result<(), Failure> {
    if system::starts(NPM) { Ok(()) } else { system::install(&["npm"]) }
}
