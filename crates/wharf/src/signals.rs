//! The signals that ask the program to stop: SIGINT, SIGTERM, and SIGHUP when the terminal is closed.

use crate::exit::Exit;
#[cfg(unix)]
use std::future;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives signals from its creation on, so that one that arrives before [`Signals::next`] is not lost.
///
/// From then on a signal no longer ends the process by default: the owner has to await it.
pub(crate) struct Signals {
    /// `None` if the handlers could not be installed; then only Ctrl-C is received.
    #[cfg(unix)]
    unix: Option<UnixSignals>,
}

#[cfg(unix)]
struct UnixSignals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the program was started to ignore it, as `nohup` does.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Installs the signal handlers. Requires a tokio runtime.
    pub(crate) fn listen() -> Signals {
        Signals {
            #[cfg(unix)]
            unix: UnixSignals::listen(),
        }
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Exit {
        #[cfg(unix)]
        if let Some(signals) = &mut self.unix {
            return signals.next().await;
        }
        let _ = tokio::signal::ctrl_c().await;
        Exit::Interrupted
    }
}

#[cfg(unix)]
impl UnixSignals {
    fn listen() -> Option<UnixSignals> {
        let hang_up = if is_hang_up_ignored() { None } else { signal(SignalKind::hangup()).ok() };
        let (interrupt, terminate) =
            (signal(SignalKind::interrupt()).ok()?, signal(SignalKind::terminate()).ok()?);
        Some(UnixSignals { interrupt, terminate, hang_up })
    }

    async fn next(&mut self) -> Exit {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            _ = hang_up => Exit::Terminated,
        }
    }
}

/// Returns whether this process was started to ignore SIGHUP. It then survives the end of its terminal on purpose.
#[cfg(target_os = "linux")]
fn is_hang_up_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    // The lowest bit is that of signal 1, which is SIGHUP.
    mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).is_some_and(|it| it & 1 == 1)
}

/// Returns whether this process may have been started to ignore SIGHUP. `nohup` takes the terminal away from its output.
#[cfg(all(unix, not(target_os = "linux")))]
fn is_hang_up_ignored() -> bool {
    use std::io::{IsTerminal, stderr, stdout};
    !stdout().is_terminal() && !stderr().is_terminal()
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
