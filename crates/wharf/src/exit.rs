//! What the program says to the shell when it is done.

use std::process::ExitCode;
use wharf_runtime::{FaultKind, Outcome};

/// How a command ended. The numbers are a contract with scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Fine,
    /// The tool answered with an error.
    ToolError,
    /// What was typed, or what a file says, cannot be used.
    Usage,
    /// There is no such tool, prompt or resource.
    NotFound,
    /// A server could not be started or reached, or went away.
    Unavailable,
    /// A panic: never the user's doing.
    OurBug,
    /// The result could not be written to standard output: the disk is full, for instance.
    NotWritten,
    /// A source rests after too many failures, or we are too busy.
    Resting,
    /// A server broke the protocol, or refused the request.
    Protocol,
    /// There was no answer in time.
    Timeout,
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    /// Those that a call can end with.
    const OF_CALLS: [Exit; 9] = [
        Exit::Fine,
        Exit::ToolError,
        Exit::Usage,
        Exit::NotFound,
        Exit::Unavailable,
        Exit::Resting,
        Exit::Protocol,
        Exit::Timeout,
        Exit::Interrupted,
    ];

    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::ToolError => 1,
            Exit::Usage => 2,
            Exit::NotFound => 66,
            Exit::Unavailable => 69,
            Exit::OurBug => 70,
            Exit::NotWritten => 74,
            Exit::Resting => 75,
            Exit::Protocol => 76,
            Exit::Timeout => 124,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        }
    }

    /// The end of a call that a gateway made, by its number.
    pub(crate) fn of_call(code: u8) -> Option<Exit> {
        Exit::OF_CALLS.into_iter().find(|it| it.code() == code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

impl From<&Outcome> for Exit {
    fn from(outcome: &Outcome) -> Exit {
        match outcome {
            Outcome::Answered(_) => Exit::Fine,
            Outcome::Refused(_) => Exit::ToolError,
            Outcome::Failed(fault) => fault.kind.into(),
        }
    }
}

/// The one place where a fault becomes an exit code.
impl From<FaultKind> for Exit {
    fn from(kind: FaultKind) -> Exit {
        match kind {
            FaultKind::Connection | FaultKind::NotReady => Exit::Unavailable,
            FaultKind::Timeout => Exit::Timeout,
            FaultKind::Protocol => Exit::Protocol,
            FaultKind::ToolNotFound | FaultKind::Quarantined | FaultKind::Disabled => Exit::NotFound,
            FaultKind::Arguments => Exit::Usage,
            FaultKind::Resting | FaultKind::Crowded | FaultKind::Closing => Exit::Resting,
            FaultKind::Abandoned => Exit::Interrupted,
        }
    }
}
