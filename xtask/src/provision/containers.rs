//! Installs the requirements for running servers in containers: podman, which needs no daemon, the runtime runc,
//! the init program catatonit, and the Rust target for statically linked programs.
//!
//! These belong to the system, so there is no folder and no stamp: every run checks for them.

use std::env::consts::ARCH;
use std::path::Path;
use std::process::Command;

use super::system;
use crate::checkout;
use crate::failure::Failure;

/// Required programs; each comes from the system package of the same name.
const PROGRAMS: [&str; 3] = ["podman", "runc", "catatonit"];

pub(super) fn are_installed() -> bool {
    let linux = cfg!(target_os = "linux");
    !linux || (PROGRAMS.iter().all(|it| system::can_start(it)) && has_target())
}

pub(super) fn install() -> Result<(), Failure> {
    if !PROGRAMS.iter().all(|it| system::can_start(it)) {
        system::install(&PROGRAMS)?;
    }
    if has_target() {
        return Ok(());
    }
    checkout::run(Command::new("rustup").args(["target", "add", &target()]))
}

fn has_target() -> bool {
    let asked = Command::new("rustc").args(["--print", "target-libdir", "--target", &target()]).output();
    asked.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim_end()).is_dir())
}

fn target() -> String {
    format!("{ARCH}-unknown-linux-musl")
}
