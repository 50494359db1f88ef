//! Owns one server process and its pipes, and stops it step by step.

use super::{Command, Patience, leash::Leash, tail::Tail};
use crate::Exit;
use std::{io, time::Duration};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::{self, Instant},
};

/// Requested pipe size, in bytes: a long message then needs fewer context switches.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;

/// How long to read the rest of stderr after the end.
const LAST_WORDS: Duration = Duration::from_millis(100);

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
    patience: Patience,
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
            let _ = rustix::pipe::fcntl_setpipe_size(&stdin, PIPE);
            let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE);
        }
        Ok(Pipes { stdin, stdout, stderr })
    }
}

impl Process {
    pub(super) async fn start(command: &Command) -> io::Result<Process> {
        let (leash, Pipes { stdin, stdout, stderr }) = Leash::start(command).await?;
        if let Some(witness) = &command.witness {
            witness.started(leash.pid());
        }
        let tail = Tail::watched_by(command.witness.clone());
        let (stdin, patience) = (Some(stdin), command.patience);
        let after_kill = AFTER_KILL + command.last_grace();
        Ok(Process { leash, stdin, stdout, stderr, tail, patience, after_kill })
    }

    /// Waits until the process has exited.
    pub(super) async fn ended(&mut self) {
        self.emptying(async |leash| leash.ended().await).await;
    }

    /// Stops the process step by step, then ends the processes that it left behind.
    pub(super) async fn stop(&mut self) -> Option<Exit> {
        self.stdin = None;
        let by = Instant::now() + self.patience.after_eof;
        let mut end = self.until(by, async |leash| leash.ended().await).await;
        let by = Instant::now() + self.patience.after_term;
        if end.is_none() {
            self.leash.terminate();
            end = self.until(by, async |leash| leash.ended().await).await;
        }
        if end.is_some() {
            self.until(by, async |leash| leash.deserted().await).await;
        }
        self.leash.kill();
        let by = Instant::now() + self.after_kill;
        self.until(by, async |leash| leash.deserted().await).await;
        if end.is_none() {
            end = self.until(by, async |leash| leash.ended().await).await;
        }
        self.hear_last_words().await;
        end.flatten()
    }

    async fn until<T>(&mut self, by: Instant, wait: impl AsyncFnOnce(&mut Leash) -> T) -> Option<T> {
        time::timeout_at(by, self.emptying(wait)).await.ok()
    }

    /// Waits while draining the pipes, because a process that is blocked on a write cannot exit.
    async fn emptying<T>(&mut self, wait: impl AsyncFnOnce(&mut Leash) -> T) -> T {
        let Process { leash, stdout, stderr, tail, .. } = self;
        let emptied = async {
            tokio::join!(discard(stdout), collect(stderr, tail));
            std::future::pending().await
        };
        tokio::select! {
            biased;
            happened = wait(leash) => happened,
            never = emptied => never,
        }
    }

    /// Reads the rest of stderr. The time is limited, because a surviving grandchild may keep it open forever.
    pub(super) async fn hear_last_words(&mut self) {
        let _ = time::timeout(LAST_WORDS, collect(&mut self.stderr, &mut self.tail)).await;
    }
}

async fn discard(stdout: &mut ChildStdout) {
    let mut chunk = vec![0; 16 << 10];
    while let Ok(1..) = stdout.read(&mut chunk).await {}
}

async fn collect(stderr: &mut ChildStderr, tail: &mut Tail) {
    let mut chunk = vec![0; 16 << 10];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        tail.push(&chunk[..count]);
    }
}
