//! The signals that ask the program to end: INT and TERM.

use crate::exit::Exit;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals from the moment it is created, so one that arrives before [`Signals::next`] is not lost.
///
/// From then on a signal no longer ends the process by itself: the owner has to ask for it.
pub(crate) struct Signals {
    /// `None` where the system lets us listen for Ctrl-C alone.
    #[cfg(unix)]
    unix: Option<(Signal, Signal)>,
}

impl Signals {
    /// Starts to listen. Needs the tokio runtime.
    pub(crate) fn listen() -> Signals {
        Signals {
            #[cfg(unix)]
            unix: signal(SignalKind::interrupt()).ok().zip(signal(SignalKind::terminate()).ok()),
        }
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Exit {
        #[cfg(unix)]
        if let Some((interrupt, terminate)) = &mut self.unix {
            return tokio::select! {
                _ = interrupt.recv() => Exit::Interrupted,
                _ = terminate.recv() => Exit::Terminated,
            };
        }
        let _ = tokio::signal::ctrl_c().await;
        Exit::Interrupted
    }
}

/// Waits for a signal that arrives from now on.
pub(crate) async fn interrupted() -> Exit {
    Signals::listen().next().await
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn a_signal_before_the_wait_is_not_lost() {
        let mut signals = Signals::listen();
        kill_process(getpid(), Signal::TERM).expect("a signal to ourselves");
        assert_eq!(signals.next().await, Exit::Terminated);
    }
}
