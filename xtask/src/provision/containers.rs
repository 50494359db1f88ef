//! What it takes to run a server in a container: podman, which needs no daemon, a runtime for it that gets by with few
//! rights, an init for what runs in there, and a Rust target whose programs need nothing around them. These belong to
//! the machine, so there is no folder of ours and no stamp: they are looked for each time.

use std::env::consts::ARCH;
use std::path::Path;
use std::process::Command;

use super::system;
use crate::checkout;
use crate::failure::Failure;

/// Programs, each from a package of its name.
const PROGRAMS: [&str; 3] = ["podman", "runc", "catatonit"];

pub(super) fn are_there() -> bool {
    let linux = cfg!(target_os = "linux");
    !linux || (PROGRAMS.iter().all(|it| system::starts(it)) && has_target())
}

pub(super) fn install() -> Result<(), Failure> {
    if !PROGRAMS.iter().all(|it| system::starts(it)) {
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
