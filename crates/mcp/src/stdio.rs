//! Servers that are child processes, spoken to over their stdin and stdout.
//!
//! A [`Command`] says everything about the process; nothing of our own environment leaks into it. Opening it starts
//! the process in a group of its own; hanging up climbs the stop ladder: close stdin, TERM to the group, KILL.

mod charset;
mod process;
mod pump;
mod tail;

use crate::{Failure, Link, Opener, Opening, frame::FRAME_LIMIT};
pub use charset::Charset;
pub(crate) use charset::Transcoder;
use process::Process;
use std::{ffi::OsString, io, path::PathBuf, time::Duration};

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
        self.after_eof + self.after_term + Duration::from_secs(1)
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
        }
    }

    fn start(&self) -> Result<Link, Failure> {
        let process = Process::spawn(self).map_err(|error| self.not_started(&error))?;
        let (charset, limit) = (self.charset, self.frame_limit);
        Ok(Link::start(false, move |far_end| pump::run(process, charset, limit, far_end)))
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
        Box::pin(async { self.start() })
    }

    fn starts_process(&self) -> bool {
        true
    }
}
