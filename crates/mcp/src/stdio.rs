//! Runs MCP servers as child processes and talks to them over stdin and stdout.
//!
//! A [`Command`] describes the process completely; it inherits nothing from our environment. Closing the link stops
//! the server in steps: close stdin, TERM, KILL. With a supervisor the steps reach every process that the server
//! started, even if we are killed ourselves; without one they reach only the server's process group.

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

pub use crate::charset::Charset;
use crate::{Failure, Link, Opener, Opening, frame::FRAME_LIMIT};
use process::Process;
pub use run::RunOutcome;
use std::{ffi::OsString, io, path::PathBuf, sync::Arc, time::Duration};
#[cfg(target_os = "linux")]
pub use supervise::supervise;

/// First argument that turns a program into a supervisor: before doing anything else, it must pass the remaining
/// arguments to `supervise`.
pub const SUPERVISE: &str = "__supervise";

/// Pseudo program for [`Command::last`]: the supervisor itself removes a folder if a marker file is missing from it.
const REMOVE_UNFINISHED: &str = "__remove-unfinished";

/// Time limit for [`Command::last`].
const LAST_GRACE: Duration = Duration::from_secs(10);

/// Describes how to start, talk to and stop a server process.
#[derive(Clone, Debug)]
pub struct Command {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments.
    pub args: Vec<OsString>,
    /// Complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Encoding of stdin and stdout.
    pub charset: Charset,
    /// Maximum size of one message from the server, in bytes.
    pub frame_limit: usize,
    /// Timeouts of the stop steps.
    pub stop_timeouts: StopTimeouts,
    /// Absolute path of a program that understands [`SUPERVISE`]. Without it, and on any system but Linux, only the
    /// process group contains the server, and a process can leave its group.
    pub supervisor: Option<PathBuf>,
    /// Observer of the process.
    pub observer: Option<Arc<dyn ProcessObserver>>,
    /// Program and arguments that the supervisor runs after the last process of the server has ended; empty for none.
    pub last: Vec<OsString>,
}

/// Observes a server process. The methods run in the task that serves its pipes and must not block.
pub trait ProcessObserver: Send + Sync + std::fmt::Debug {
    /// Reports the start, with the server's own process id if known.
    fn started(&self, pid: Option<u32>);

    /// Reports a line on stderr, without terminal escapes, truncated if it is long.
    fn stderr_line(&self, line: &str);
}

/// Timeouts between the stop steps.
#[derive(Clone, Copy, Debug)]
pub struct StopTimeouts {
    /// Wait after closing stdin.
    pub after_eof: Duration,
    /// Wait after TERM.
    pub after_term: Duration,
}

impl Default for StopTimeouts {
    fn default() -> StopTimeouts {
        StopTimeouts { after_eof: Duration::from_secs(3), after_term: Duration::from_secs(2) }
    }
}

impl StopTimeouts {
    /// Returns the maximum duration of a stop, with a margin for the kernel.
    pub fn total(self) -> Duration {
        self.after_eof + self.after_term + process::AFTER_KILL
    }
}

impl Command {
    /// Creates a command without arguments or environment that runs in `cwd`.
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            charset: Charset::UTF_8,
            frame_limit: FRAME_LIMIT,
            stop_timeouts: StopTimeouts::default(),
            supervisor: None,
            observer: None,
            last: Vec::new(),
        }
    }

    /// Makes the supervisor remove `folder` after the process has ended, unless the folder contains `finished`. This
    /// works even if the process, or our own, was killed.
    pub fn remove_unfinished(&mut self, folder: PathBuf, finished: &str) {
        self.last = vec![REMOVE_UNFINISHED.into(), folder.into(), finished.into()];
    }

    async fn start(&self) -> Result<Link, Failure> {
        let process = Process::start(self).await.map_err(|error| self.start_failure(&error))?;
        let (charset, limit) = (self.charset, self.frame_limit);
        Ok(Link::start(false, move |link_io| pump::run(process, charset, limit, link_io)))
    }

    /// Returns the extra time that a stop may take because of [`Command::last`].
    fn last_grace(&self) -> Duration {
        if self.last.is_empty() { Duration::ZERO } else { LAST_GRACE }
    }

    fn start_failure(&self, error: &io::Error) -> Failure {
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
