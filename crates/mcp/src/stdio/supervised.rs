//! Host's side of a server that runs under a supervisor.
//!
//! Dropping it closes the lifeline. The supervisor then ends the server's whole process tree on its own, TERM before
//! KILL, even if nothing waits for it.

use super::{
    Command,
    lifeline::{self, Order, SupervisorMessage},
    process::Pipes,
    supervise,
};
use crate::Exit;
use rustix::{
    pipe::{PipeFlags, pipe_with},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal},
};
use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream as Socket,
    },
    path::Path,
    process::{self, Stdio},
};
use tokio::{
    io::AsyncReadExt,
    net::UnixStream,
    process::{Child, ChildStdin},
};

/// Server process under a supervisor.
#[derive(Debug)]
pub(super) struct Supervised {
    supervisor: Child,
    /// Socket to the supervisor; `None` after the supervisor is gone.
    lifeline: Option<UnixStream>,
    /// Bytes of an incomplete message.
    buffer: Vec<u8>,
    /// Server process, needed if the supervisor is killed.
    server: Option<(Pid, OwnedFd)>,
    exit: Option<Exit>,
}

impl Supervised {
    /// Starts a server and returns when it runs, or with the reason why it could not start.
    pub(super) async fn start(command: &Command, supervisor: &Path) -> io::Result<(Supervised, Pipes)> {
        let (lifeline, supervisor_end) = Socket::pair()?;
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut child = spawn(command, supervisor, supervisor_end)?;
        lifeline::send_stdin(&lifeline, reader.as_fd())?;
        drop(reader);
        lifeline.set_nonblocking(true)?;
        let stdin = ChildStdin::from_std(process::ChildStdin::from(writer))?;
        let pipes = Pipes::of(&mut child, Some(stdin))?;
        let lifeline = Some(UnixStream::from_std(lifeline)?);
        let mut supervised =
            Supervised { supervisor: child, lifeline, buffer: Vec::new(), server: None, exit: None };
        supervised.wait_for_start().await?;
        Ok((supervised, pipes))
    }

    async fn wait_for_start(&mut self) -> io::Result<()> {
        match self.next_message().await {
            Some(SupervisorMessage::Started(server)) => {
                self.server = pidfd_open(server, PidfdFlags::empty()).ok().map(|handle| (server, handle));
                Ok(())
            }
            Some(SupervisorMessage::NotStarted(error)) => Err(error.into()),
            Some(SupervisorMessage::Exited(_)) | None => {
                Err(io::Error::other("the supervisor exited at start"))
            }
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.server.as_ref().and_then(|(pid, _)| pid.as_raw_nonzero().get().try_into().ok())
    }

    /// Waits until the server itself has exited; returns its exit if known.
    pub(super) async fn wait_for_exit(&mut self) -> Option<Exit> {
        while self.exit.is_none() {
            match self.next_message().await {
                Some(SupervisorMessage::Exited(exit)) => self.exit = Some(exit),
                Some(_) => {}
                None => {
                    self.supervisor.wait().await.ok();
                    self.end_unsupervised();
                    return None;
                }
            }
        }
        self.exit
    }

    /// Waits until no process of the server's tree is left.
    pub(super) async fn wait_for_tree(&mut self) {
        let _ = self.supervisor.wait().await;
        if self.exit.is_none() {
            self.wait_for_exit().await;
        }
    }

    pub(super) fn order(&self, order: Order) {
        if let Some(lifeline) = &self.lifeline {
            // One byte always fits; if the supervisor is gone, no process is left to signal.
            let _ = lifeline.try_write(&[order.encode()]);
        }
    }

    /// Kills the server and its process group directly, because the supervisor was killed.
    fn end_unsupervised(&mut self) {
        if let Some((server, handle)) = self.server.take()
            && pidfd_send_signal(handle, Signal::KILL).is_ok()
        {
            let _ = kill_process_group(server, Signal::KILL);
        }
    }

    /// Reads the supervisor's next message; `None` after the supervisor is gone. Cancel-safe: received bytes are
    /// kept.
    async fn next_message(&mut self) -> Option<SupervisorMessage> {
        while self.buffer.len() < SupervisorMessage::LENGTH {
            let read = match &mut self.lifeline {
                Some(lifeline) => lifeline.read_buf(&mut self.buffer).await,
                None => return None,
            };
            if !matches!(read, Ok(1..)) {
                self.lifeline = None;
            }
        }
        let message = self.buffer.first_chunk().copied();
        self.buffer.drain(..SupervisorMessage::LENGTH);
        message.and_then(SupervisorMessage::decode)
    }
}

/// Spawns the supervisor with the server's environment, directory and output pipes; its stdin is the lifeline.
fn spawn(command: &Command, supervisor: &Path, lifeline: Socket) -> io::Result<Child> {
    let server = [command.program.clone().into_os_string()].into_iter().chain(command.args.iter().cloned());
    let arguments = supervise::arguments(server.collect(), command.last.clone());
    tokio::process::Command::new(supervisor)
        .arg(super::SUPERVISE)
        .args(arguments)
        .env_clear()
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&command.cwd)
        .stdin(Stdio::from(OwnedFd::from(lifeline)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match command.cwd.is_dir() {
            true => io::Error::other(format!(
                "could not start the supervisor `{}`: {error}",
                supervisor.display()
            )),
            false => error,
        })
}
