//! Owns one server process and its pipes, and stops it step by step.

use super::{Command, StopTimeouts, leash::Leash, tail::Tail};
use crate::Exit;
use std::{io, time::Duration};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::{self, Instant},
};

/// Requested pipe size, in bytes: a long message then needs fewer context switches.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 1 << 20;

/// How long to read the rest of stderr after the end.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// Time for the kernel to remove killed processes.
pub(super) const AFTER_KILL: Duration = Duration::from_secs(1);

/// Running server process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) leash: Leash,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) tail: Tail,
    stop_timeouts: StopTimeouts,
    after_kill: Duration,
}

/// Our ends of a server's pipes.
#[derive(Debug)]
pub(super) struct Pipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

impl Pipes {
    pub(super) fn of(child: &mut Child, stdin: Option<ChildStdin>) -> io::Result<Pipes> {
        let missing = || io::Error::other("a pipe is missing");
        let stdin = stdin.ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        #[cfg(target_os = "linux")]
        {
            // Ignored: the kernel refuses when the user's pipes exceed a quota, and the default size works too.
            let _ = rustix::pipe::fcntl_setpipe_size(&stdin, PIPE_SIZE);
            let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_SIZE);
        }
        Ok(Pipes { stdin, stdout, stderr })
    }
}

impl Process {
    pub(super) async fn start(command: &Command) -> io::Result<Process> {
        let (leash, Pipes { stdin, stdout, stderr }) = Leash::start(command).await?;
        if let Some(observer) = &command.observer {
            observer.started(leash.pid());
        }
        let tail = Tail::with_observer(command.observer.clone());
        let (stdin, stop_timeouts) = (Some(stdin), command.stop_timeouts);
        let after_kill = AFTER_KILL + command.last_grace();
        Ok(Process { leash, stdin, stdout, stderr, tail, stop_timeouts, after_kill })
    }

    /// Waits until the process has exited.
    pub(super) async fn wait_for_exit(&mut self) {
        self.wait_while_draining(async |leash| leash.wait_for_exit().await).await;
    }

    /// Stops the process step by step, then ends the processes that it left behind.
    pub(super) async fn stop(&mut self) -> Option<Exit> {
        self.stdin = None;
        let deadline = Instant::now() + self.stop_timeouts.after_eof;
        let mut exit = self.wait_until(deadline, async |leash| leash.wait_for_exit().await).await;
        let deadline = Instant::now() + self.stop_timeouts.after_term;
        if exit.is_none() {
            self.leash.terminate();
            exit = self.wait_until(deadline, async |leash| leash.wait_for_exit().await).await;
        }
        if exit.is_some() {
            self.wait_until(deadline, async |leash| leash.wait_for_tree().await).await;
        }
        self.leash.kill();
        let deadline = Instant::now() + self.after_kill;
        self.wait_until(deadline, async |leash| leash.wait_for_tree().await).await;
        if exit.is_none() {
            exit = self.wait_until(deadline, async |leash| leash.wait_for_exit().await).await;
        }
        self.drain_stderr().await;
        exit.flatten()
    }

    async fn wait_until<T>(
        &mut self,
        deadline: Instant,
        wait: impl AsyncFnOnce(&mut Leash) -> T,
    ) -> Option<T> {
        time::timeout_at(deadline, self.wait_while_draining(wait)).await.ok()
    }

    /// Waits while draining the pipes, because a process that is blocked on a write cannot exit.
    async fn wait_while_draining<T>(&mut self, wait: impl AsyncFnOnce(&mut Leash) -> T) -> T {
        let Process { leash, stdout, stderr, tail, .. } = self;
        let draining = async {
            tokio::join!(drain_stdout(stdout), collect_stderr(stderr, tail));
            std::future::pending().await
        };
        tokio::select! {
            biased;
            output = wait(leash) => output,
            never = draining => never,
        }
    }

    /// Reads the rest of stderr. The time is limited, because a surviving grandchild may keep it open forever.
    pub(super) async fn drain_stderr(&mut self) {
        let _ = time::timeout(STDERR_DRAIN_TIMEOUT, collect_stderr(&mut self.stderr, &mut self.tail)).await;
    }
}

async fn drain_stdout(stdout: &mut ChildStdout) {
    let mut chunk = vec![0; 16 << 10];
    while let Ok(1..) = stdout.read(&mut chunk).await {}
}

async fn collect_stderr(stderr: &mut ChildStderr, tail: &mut Tail) {
    let mut chunk = vec![0; 16 << 10];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        tail.push(&chunk[..count]);
    }
}
