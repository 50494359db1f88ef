//! What holds a server's processes: a supervisor where there is one, else their group.

use super::{Command, group::Group, process::Pipes};
#[cfg(target_os = "linux")]
use super::{lifeline::Order, supervised::Supervised};
use crate::Exit;
use rustix::process::Signal;
use std::io;

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

    /// The server's process id.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Leash::Group(group) => group.pid(),
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.pid(),
        }
    }

    /// Waits until the server itself has ended, and tells how, if that is known. May be asked again.
    pub(super) async fn ended(&mut self) -> Option<Exit> {
        match self {
            Leash::Group(group) => group.ended().await,
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.ended().await,
        }
    }

    /// Waits until nothing that the server started is left, as far as that can be known.
    pub(super) async fn deserted(&mut self) {
        match self {
            Leash::Group(group) => _ = group.ended().await,
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.deserted().await,
        }
    }

    /// Asks everything to end.
    pub(super) fn terminate(&self) {
        match self {
            Leash::Group(group) => group.signal(Signal::TERM),
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.order(Order::Terminate),
        }
    }

    /// Ends everything.
    pub(super) fn kill(&self) {
        match self {
            Leash::Group(group) => group.signal(Signal::KILL),
            #[cfg(target_os = "linux")]
            Leash::Supervised(supervised) => supervised.order(Order::Kill),
        }
    }
}
