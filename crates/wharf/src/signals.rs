//! The signals that ask the program to stop: SIGINT and SIGTERM.

use crate::exit::Exit;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives signals from its creation on, so that one that arrives before [`Signals::next`] is not lost.
///
/// From then on a signal no longer ends the process by default: the owner has to await it.
pub(crate) struct Signals {
    /// `None` if the handlers could not be installed; then only Ctrl-C is received.
    #[cfg(unix)]
    unix: Option<(Signal, Signal)>,
}

impl Signals {
    /// Installs the signal handlers. Requires a tokio runtime.
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

/// Waits for a signal that arrives after this call.
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
