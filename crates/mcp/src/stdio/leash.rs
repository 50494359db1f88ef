//! Controls a server's processes, through a supervisor if there is one, else through their process group.

use super::{Command, group::Group, process::Pipes};
#[cfg(target_os = "linux")]
use super::{lifeline::Order, supervised::Supervised};
use crate::Exit;
use rustix::process::Signal;
use std::io;

/// Means of controlling the server's processes.
#[derive(Debug)]
pub(super) enum Leash {
    Group(Group),
    #[cfg(target_os = "linux")]
    Supervised(Supervised),
}

impl Leash {
    pub(super) async fn start(command: &Command) -> io::Result<(Leash, Pipes)> {
        #[cfg(target_os = "linux")]
        if let Some(supervisor) = &command.supervisor {
            let (supervised, pipes) = Supervised::start(command, supervisor).await?;
            return Ok((Leash::Supervised(supervised), pipes));
        }
        let (group, pipes) = Group::start(command)?;
        Ok((Leash::Group(group), pipes))
    }

    /// Returns the server's process id.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Leash::Group(group) => group.pid(),
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.pid(),
        }
    }

    /// Waits until the server itself has exited; returns its exit if known. May be called again.
    pub(super) async fn wait_for_exit(&mut self) -> Option<Exit> {
        match self {
            Leash::Group(group) => group.wait_for_exit().await,
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.wait_for_exit().await,
        }
    }

    /// Waits until no process that the server started is left; a process group only waits for the server itself.
    pub(super) async fn wait_for_tree(&mut self) {
        match self {
            Leash::Group(group) => _ = group.wait_for_exit().await,
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.wait_for_tree().await,
        }
    }

    /// Sends TERM to all processes.
    pub(super) fn terminate(&self) {
        match self {
            Leash::Group(group) => group.signal(Signal::TERM),
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.order(Order::Terminate),
        }
    }

    /// Sends KILL to all processes.
    pub(super) fn kill(&self) {
        match self {
            Leash::Group(group) => group.signal(Signal::KILL),
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.order(Order::Kill),
        }
    }
}
