//! A server in a container, which ends only when somebody ends it: the `docker` that was started merely watches it.
//!
//! So every container has a name of its own, by which it is removed when nothing is left of that `docker`. And the server
//! is not the first process in there, because the first one hears no signal that it does not ask for, and has to collect
//! the dead of all others: an init is. Where the operator grants `--init=false`, that comes later, and so it counts.

use crate::config::{Launch, Launcher, Program};
use std::{
    ffi::OsString,
    sync::atomic::{AtomicU64, Ordering},
};
use wharf_mcp::{Opener, Opening, stdio::Command};

struct Container {
    command: Command,
    started: AtomicU64,
}

/// What opens a launch by this command.
pub(super) fn opener(launch: &Launch, command: Command) -> Box<dyn Opener> {
    match launch.program {
        Program::Launcher(Launcher::Docker) => Box::new(Container { command, started: AtomicU64::new(0) }),
        Program::Launcher(_) | Program::Granted(_) | Program::Interpreter(_) => Box::new(command),
    }
}

impl Container {
    /// The command for one container, which is not the last one: that may still be on its way out.
    fn next(&self) -> Command {
        let place = self.command.cwd.file_name().unwrap_or_default().to_string_lossy();
        let name: OsString = format!("{place}-{}", self.started.fetch_add(1, Ordering::Relaxed)).into();
        let mut command = self.command.clone();
        command.last = vec![command.program.clone().into(), "rm".into(), "--force".into(), name.clone()];
        // Behind `run`, before the flags that were written.
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
