//! Installs npm packages. npm itself must be on the machine; if it is missing, it is installed from the system
//! packages where permitted.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::system;
use crate::checkout;
use crate::failure::Failure;

const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };
const NPX: &str = if cfg!(windows) { "npx.cmd" } else { "npx" };

/// Timeout after which npm retries a request, in milliseconds. The default is five minutes.
const FETCH_TIMEOUT: &str = "--fetch-timeout=20000";

/// Arguments without audits, funding requests and update notices.
const INSTALL: [&str; 5] = ["install", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];

pub(super) fn install(folder: &Path, packages: &[&str]) -> Result<(), Failure> {
    ensure_npm()?;
    // A folder with a manifest is a project, so npm does not search the parent folders for one.
    let manifest = folder.join("package.json");
    fs::write(&manifest, "{ \"private\": true }\n").map_err(|error| {
        Failure::new(format!("could not write `{}`: {error}", manifest.display()))
            .hint("make the folder writable and try again")
    })?;
    checkout::run(Command::new(NPM).current_dir(folder).args(INSTALL).arg(FETCH_TIMEOUT).args(packages))
}

/// Fills an npx cache with these packages, so that a test that starts one does not wait for a download. Skips
/// install scripts, because some of them download programs that no test needs.
pub(super) fn fill_cache(folder: &Path, packages: &[&str]) -> Result<(), Failure> {
    ensure_npm()?;
    for package in packages {
        let mut command = Command::new(NPX);
        command.current_dir(folder).env("npm_config_cache", folder).args([
            "--yes",
            "--ignore-scripts",
            FETCH_TIMEOUT,
        ]);
        checkout::run(command.args(["--package", package, "--", "node", "--eval", ""]))?;
    }
    Ok(())
}

/// Fills an npx cache with packages of fixed versions, and deletes the archives.
pub(super) fn fill_servers(folder: &Path, servers: &[&str]) -> Result<(), Failure> {
    fill_cache(folder, servers)?;
    // npx runs the installed copy of a package with a fixed version, so the archives would only double the size.
    let archives = folder.join("_cacache");
    fs::remove_dir_all(&archives).map_err(|error| {
        Failure::new(format!("could not remove `{}`: {error}", archives.display()))
            .hint("make the folder writable and try again")
    })
}

fn ensure_npm() -> Result<(), Failure> {
    if system::can_start(NPM) { Ok(()) } else { system::install(&["npm"]) }
}
