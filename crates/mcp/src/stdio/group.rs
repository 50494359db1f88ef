//! Contains a server in its own process group when there is no supervisor.
//!
//! A process that leaves the group escapes, and none is ended if the host is killed.

use super::{Command, process::Pipes};
use crate::Exit;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    process::{ExitStatus, Stdio},
};
use tokio::process::Child;

/// Server process that leads its own process group.
#[derive(Debug)]
pub(super) struct Group {
    leader: Child,
    id: Option<Pid>,
}

impl Group {
    pub(super) fn start(command: &Command) -> io::Result<(Group, Pipes)> {
        let mut leader = tokio::process::Command::new(&command.program)
            .args(&command.args)
            .env_clear()
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&command.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let stdin = leader.stdin.take();
        let pipes = Pipes::of(&mut leader, stdin)?;
        Ok((Group { leader, id }, pipes))
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.leader.id()
    }

    pub(super) async fn wait_for_exit(&mut self) -> Option<Exit> {
        self.leader.wait().await.ok().and_then(exit)
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // A failure means that the group is already gone.
            let _ = kill_process_group(id, signal);
        }
    }
}

/// Kills the group: a destructor cannot wait for a graceful stop.
impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn exit(status: ExitStatus) -> Option<Exit> {
    use std::os::unix::process::ExitStatusExt;
    status.code().map(Exit::Code).or_else(|| status.signal().map(Exit::Signal))
}
