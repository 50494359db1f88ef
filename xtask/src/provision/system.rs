//! Installs system packages with apt where permitted; otherwise fails and names the packages to install.

use std::process::{Command, Stdio};

use crate::checkout;
use crate::failure::Failure;

pub(super) fn install(packages: &[&str]) -> Result<(), Failure> {
    let wanted = packages.join(" ");
    if !can_install() {
        return Err(Failure::new(format!("some tests need packages that are not installed: {wanted}"))
            .hint(format!("install it (Debian: `apt install {wanted}`)")));
    }
    checkout::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    let quiet_install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    checkout::run(
        Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(quiet_install).args(packages),
    )
}

pub(super) fn can_install() -> bool {
    is_root() && can_start("apt-get")
}

pub(super) fn can_start(program: &str) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

pub(super) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}
