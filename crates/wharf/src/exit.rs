//! The exit codes of the program.

use std::process::ExitCode;
use wharf_agent::{
    RunError, RunReport,
    model::trouble::{ProviderErrorKind, Trouble},
};
use wharf_runtime::{FaultKind, Outcome};

/// Result of a command. The numeric codes are a contract with scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Success,
    /// The tool returned an error, or what was compared differs.
    ToolError,
    /// The command line or a file is invalid.
    Usage,
    /// The tool, prompt or resource does not exist, or the tool is disabled or quarantined.
    NotFound,
    /// A server could not be started or reached, or it disconnected.
    Unavailable,
    /// A bug in wharf, such as a panic.
    InternalError,
    /// Standard output could not be written, for example because the disk is full.
    OutputError,
    /// A circuit breaker is open, wharf is overloaded, or it is shutting down.
    TemporaryFailure,
    /// A server violated the protocol or refused the request.
    Protocol,
    /// The request timed out.
    Timeout,
    /// Ctrl-C, or a caller that disconnected.
    Interrupted,
    /// SIGTERM, or SIGHUP because the terminal was closed.
    Terminated,
}

impl Exit {
    /// The results that a call can have.
    const CALL_RESULTS: [Exit; 9] = [
        Exit::Success,
        Exit::ToolError,
        Exit::Usage,
        Exit::NotFound,
        Exit::Unavailable,
        Exit::TemporaryFailure,
        Exit::Protocol,
        Exit::Timeout,
        Exit::Interrupted,
    ];

    /// Returns the numeric exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::ToolError => 1,
            Exit::Usage => 2,
            Exit::NotFound => 66,
            Exit::Unavailable => 69,
            Exit::InternalError => 70,
            Exit::OutputError => 74,
            Exit::TemporaryFailure => 75,
            Exit::Protocol => 76,
            Exit::Timeout => 124,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        }
    }

    /// Converts the exit code of a call that a gateway made.
    pub(crate) fn of_call(code: u8) -> Option<Exit> {
        Exit::CALL_RESULTS.into_iter().find(|it| it.code() == code)
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
            Outcome::Answered(_) => Exit::Success,
            Outcome::Refused(_) => Exit::ToolError,
            Outcome::Failed(fault) => fault.kind.into(),
        }
    }
}

/// Maps a fault to an exit code. This is the only place that does.
impl From<FaultKind> for Exit {
    fn from(kind: FaultKind) -> Exit {
        match kind {
            FaultKind::Connection | FaultKind::NotReady => Exit::Unavailable,
            FaultKind::Timeout => Exit::Timeout,
            FaultKind::Protocol => Exit::Protocol,
            FaultKind::ToolNotFound
            | FaultKind::Quarantined
            | FaultKind::Disabled
            | FaultKind::LockMismatch
            | FaultKind::ResultNotFound => Exit::NotFound,
            FaultKind::NotRecorded => Exit::ToolError,
            FaultKind::Arguments => Exit::Usage,
            FaultKind::BreakerOpen | FaultKind::ProcessLimitReached | FaultKind::Closing => {
                Exit::TemporaryFailure
            }
            FaultKind::Abandoned => Exit::Interrupted,
        }
    }
}

/// Maps the end of an agent's run to an exit code.
impl From<&RunReport> for Exit {
    fn from(report: &RunReport) -> Exit {
        match &report.error {
            None => Exit::Success,
            Some(RunError::Model(trouble)) => trouble.into(),
            Some(RunError::Timeout(_)) => Exit::Timeout,
            Some(RunError::Store(_)) => Exit::InternalError,
            Some(RunError::Cancelled | RunError::Interrupted) => Exit::Interrupted,
            Some(
                RunError::Limit(_)
                | RunError::Refused(_)
                | RunError::OutputInvalid(_)
                | RunError::ContextFull(_),
            ) => Exit::ToolError,
        }
    }
}

impl From<&Trouble> for Exit {
    fn from(trouble: &Trouble) -> Exit {
        use ProviderErrorKind as Kind;
        match trouble {
            Trouble::Connect(_) => Exit::Unavailable,
            Trouble::NoFirstByte(_) | Trouble::Silent(_) => Exit::Timeout,
            Trouble::Unavailable { .. } => Exit::TemporaryFailure,
            Trouble::NotRecorded(_) => Exit::ToolError,
            Trouble::Provider(error) => match error.kind {
                Kind::RateLimited | Kind::Overloaded => Exit::TemporaryFailure,
                Kind::Timeout => Exit::Timeout,
                Kind::Unauthorized | Kind::NotFound => Exit::Usage,
                Kind::ToolRefused { .. } => Exit::Unavailable,
                Kind::TooLong { .. } => Exit::ToolError,
                Kind::Server | Kind::BadRequest => Exit::Protocol,
            },
            Trouble::Cut
            | Trouble::Empty
            | Trouble::NotEvents(_)
            | Trouble::Garbled(_)
            | Trouble::TooMuch { .. } => Exit::Protocol,
        }
    }
}
