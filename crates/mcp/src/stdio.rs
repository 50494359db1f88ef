//! Servers that are child processes, spoken to over their stdin and stdout.
//!
//! A [`Command`] says everything about the process; nothing of our own environment leaks into it. Hanging up climbs the
//! stop ladder: close stdin, TERM, KILL. With a supervisor it reaches whatever the server started, and it is climbed even
//! when we are killed ourselves; without one it reaches the server's process group.

mod charset;
mod group;
mod leash;
#[cfg(target_os = "linux")]
mod lifeline;
mod process;
mod pump;
mod run;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod supervised;
mod tail;
#[cfg(target_os = "linux")]
mod tree;

use crate::{Failure, Link, Opener, Opening, frame::FRAME_LIMIT};
pub use charset::Charset;
pub(crate) use charset::Transcoder;
use process::Process;
pub use run::Ended;
use std::{ffi::OsString, io, path::PathBuf, sync::Arc, time::Duration};
#[cfg(target_os = "linux")]
pub use supervise::supervise;

/// The first word on the command line of a program that is to be a supervisor: it then hands the others to `supervise`,
/// before it does anything else.
pub const SUPERVISE: &str = "__supervise";

/// In the place of a program that comes last: the supervisor itself removes a folder in which a file is missing.
const REMOVE_UNFINISHED: &str = "__remove-unfinished";

/// How long the command that comes last may take.
const LAST_GRACE: Duration = Duration::from_secs(10);

/// How a server process is started, talked to and stopped.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program, as an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The encoding of its stdin and stdout.
    pub charset: Charset,
    /// The longest message it may send.
    pub frame_limit: usize,
    /// How long each step of the stop ladder waits.
    pub patience: Patience,
    /// A program that understands [`SUPERVISE`], as an absolute path. Without it, and anywhere but on Linux, the server is
    /// held by its process group alone, which it can leave.
    pub supervisor: Option<PathBuf>,
    /// Who is told what the process does.
    pub witness: Option<Arc<dyn Witness>>,
    /// A program and its arguments, run by the supervisor when nothing is left of the server; empty for none.
    pub last: Vec<OsString>,
}

/// Told what a server process does, from the task that serves its pipes: it must not block.
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// It has started; the process id is the server's own, where that is known.
    fn started(&self, pid: Option<u32>);

    /// It wrote this line to stderr, without terminal escapes, cut if it is long.
    fn wrote(&self, line: &str);
}

/// How long each step of the stop ladder waits before the next.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// After stdin was closed.
    pub after_eof: Duration,
    /// After TERM.
    pub after_term: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { after_eof: Duration::from_secs(3), after_term: Duration::from_secs(2) }
    }
}

impl Patience {
    /// The longest a stop takes, with some room for the kernel.
    pub fn total(self) -> Duration {
        self.after_eof + self.after_term + process::AFTER_KILL
    }
}

impl Command {
    /// A command without arguments or environment, run in `cwd`.
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            charset: Charset::UTF_8,
            frame_limit: FRAME_LIMIT,
            patience: Patience::default(),
            supervisor: None,
            witness: None,
            last: Vec::new(),
        }
    }

    /// When nothing is left of the process, the supervisor removes `folder` unless `finished` is in it: even if the process
    /// was killed, or we were.
    pub fn remove_unfinished(&mut self, folder: PathBuf, finished: &str) {
        self.last = vec![REMOVE_UNFINISHED.into(), folder.into(), finished.into()];
    }

    async fn start(&self) -> Result<Link, Failure> {
        let process = Process::start(self).await.map_err(|error| self.not_started(&error))?;
        let (charset, limit) = (self.charset, self.frame_limit);
        Ok(Link::start(false, move |far_end| pump::run(process, charset, limit, far_end)))
    }

    /// How much longer a stop may take because of what is run last.
    fn last_grace(&self) -> Duration {
        if self.last.is_empty() { Duration::ZERO } else { LAST_GRACE }
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let program = self.program.display();
        Failure::connect(match error.kind() {
            io::ErrorKind::NotFound if !self.cwd.is_dir() => {
                format!("could not start `{program}`: there is no directory `{}`", self.cwd.display())
            }
            io::ErrorKind::NotFound => {
                format!("could not start `{program}`: there is no such program")
            }
            _ => format!("could not start `{program}`: {error}"),
        })
    }
}

impl Opener for Command {
    fn open(&self) -> Opening<'_> {
        Box::pin(self.start())
    }

    fn starts_process(&self) -> bool {
        true
    }
}
