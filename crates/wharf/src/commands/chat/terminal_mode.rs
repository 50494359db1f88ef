//! The mode of the terminal, which the line editor changes while it reads.

#[cfg(unix)]
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io;

/// Mode of the terminal when the chat began.
pub(super) struct TerminalMode {
    #[cfg(unix)]
    saved: Option<Termios>,
}

impl TerminalMode {
    /// Saves the current mode.
    pub(super) fn save() -> TerminalMode {
        TerminalMode {
            #[cfg(unix)]
            saved: tcgetattr(io::stdin()).ok(),
        }
    }

    /// Restores the mode. Needed if a signal ends the program while the line editor reads.
    pub(super) fn restore(&self) {
        #[cfg(unix)]
        if let Some(saved) = &self.saved {
            // Without a terminal there is nothing to restore.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, saved);
        }
    }
}
