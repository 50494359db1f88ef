//! Runs a server in a container. The `docker run` process only attaches to the container, so ending it does not end
//! the container.
//!
//! Every container therefore gets a unique name, by which it is removed after the `docker` process has ended. It also
//! gets an init (`--init`), because process 1 ignores signals without a handler and has to reap orphans.
//! `--init=false` granted by the operator follows later on the command line and wins.

use std::{
    ffi::OsString,
    sync::atomic::{AtomicU64, Ordering},
};
use wharf_config::{Launch, Launcher, Program};
use wharf_mcp::{Opener, Opening, stdio::Command};

struct Container {
    command: Command,
    started: AtomicU64,
}

/// Returns the opener for a launch with this command.
pub(super) fn opener(launch: &Launch, command: Command) -> Box<dyn Opener> {
    match launch.program {
        Program::Launcher(Launcher::Docker) => Box::new(Container { command, started: AtomicU64::new(0) }),
        Program::Launcher(_) | Program::Granted(_) | Program::Interpreter(_) => Box::new(command),
    }
}

impl Container {
    /// Returns the command for the next container. Each has a new name, because the previous one may still be
    /// shutting down.
    fn next(&self) -> Command {
        let place = self.command.cwd.file_name().unwrap_or_default().to_string_lossy();
        let name: OsString = format!("{place}-{}", self.started.fetch_add(1, Ordering::Relaxed)).into();
        let mut command = self.command.clone();
        command.last = vec![command.program.clone().into(), "rm".into(), "--force".into(), name.clone()];
        // After `run`, before the configured flags.
        command.args.splice(1..1, ["--name".into(), name, "--init".into()]);
        command
    }
}

impl Opener for Container {
    fn open(&self) -> Opening<'_> {
        let command = self.next();
        Box::pin(async move { command.open().await })
    }

    fn starts_process(&self) -> bool {
        true
    }
}
