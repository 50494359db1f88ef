//! One child process in a group of its own, and the ladder that stops it.

use super::{Command, Patience, tail::Tail};
use crate::Exit;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time,
};

/// How large a pipe we ask for: a long message then needs fewer switches between us and the server.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;

/// How long a closing server's last words are waited for.
const LAST_WORDS: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
    pub(super) tail: Tail,
    group: Option<Pid>,
    patience: Patience,
}

impl Process {
    pub(super) fn spawn(command: &Command) -> io::Result<Process> {
        let mut child = tokio::process::Command::new(&command.program)
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
        let group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let piped = || io::Error::other("a pipe is missing");
        let stdin = child.stdin.take().ok_or_else(piped)?;
        let stdout = child.stdout.take().ok_or_else(piped)?;
        let stderr = child.stderr.take().ok_or_else(piped)?;
        #[cfg(target_os = "linux")]
        {
            // Refused when the user's pipes are many already; the usual size works too.
            let _ = rustix::pipe::fcntl_setpipe_size(&stdin, PIPE);
            let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE);
        }
        let (stdin, tail, patience) = (Some(stdin), Tail::default(), command.patience);
        Ok(Process { child, stdin, stdout, stderr, tail, group, patience })
    }

    /// Climbs the ladder until the process has ended, then ends what is left of its group.
    pub(super) async fn stop(&mut self) -> Option<Exit> {
        self.stdin = None;
        let mut status = self.ended_within(self.patience.after_eof).await;
        if status.is_none() {
            self.signal(Signal::TERM);
            status = self.ended_within(self.patience.after_term).await;
        }
        self.signal(Signal::KILL);
        if status.is_none() {
            status = self.child.wait().await.ok();
        }
        self.hear_last_words().await;
        status.and_then(exit)
    }

    /// Waits for the end while emptying the pipes: a process that cannot write cannot end either.
    async fn ended_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let Process { child, stdout, stderr, tail, .. } = self;
        let emptied = async {
            tokio::join!(discard(stdout), collect(stderr, tail));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            status = child.wait() => status.ok(),
            () = emptied => None,
            () = time::sleep(patience) => None,
        }
    }

    /// Reads the rest of stderr, which a surviving grandchild may hold open for ever.
    pub(super) async fn hear_last_words(&mut self) {
        let _ = time::timeout(LAST_WORDS, collect(&mut self.stderr, &mut self.tail)).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be gone already, which is what we want.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// A dropped process takes its group with it: there is no time for a ladder in a destructor.
impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
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

pub(super) fn exit(status: ExitStatus) -> Option<Exit> {
    use std::os::unix::process::ExitStatusExt;
    status.code().map(Exit::Code).or_else(|| status.signal().map(Exit::Signal))
}
