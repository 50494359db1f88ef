//! What the program says to the shell when it is done.

use std::process::ExitCode;

/// How a command ended. The numbers are a contract with scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Fine,
    /// What was typed, or what a file says, cannot be used.
    Usage,
    /// A panic: never the user's doing.
    OurBug,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Fine => 0,
            Exit::Usage => 2,
            Exit::OurBug => 70,
        })
    }
}
