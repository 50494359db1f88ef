//! Deadlines of requests: either fixed, or an idle timeout that progress extends up to a maximum.

use super::ears::{OnProgress, Progress};
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{self, Instant};

/// Deadline of one request.
#[derive(Clone, Debug)]
pub(crate) struct Until {
    by: Instant,
    stretch: Option<Arc<Stretch>>,
}

/// Shared state that extends a deadline.
#[derive(Debug)]
pub(crate) struct Stretch {
    heard: Mutex<Instant>,
    /// Number of server questions being answered. While it is above zero, the server is waiting for us, so the idle
    /// timeout does not run.
    asked: AtomicUsize,
    quiet: Duration,
    at_most: Instant,
}

/// Guard for one server question being answered; pauses the idle timeout until it is dropped.
#[derive(Debug)]
pub(crate) struct Asking(Arc<Stretch>);

impl Until {
    /// Creates a deadline `quiet` after the latest progress, at most at `at_most`.
    pub(crate) fn quiet_for(quiet: Duration, at_most: Instant) -> Until {
        let now = Instant::now();
        let stretch = Stretch { heard: Mutex::new(now), asked: AtomicUsize::new(0), quiet, at_most };
        Until { by: at_most.min(now + quiet), stretch: Some(Arc::new(stretch)) }
    }

    /// Returns the initial deadline, before any extension.
    pub(crate) fn by(&self) -> Instant {
        self.by
    }

    /// Returns the state that pauses the idle timeout while server questions are being answered.
    pub(crate) fn stretch(&self) -> Option<Arc<Stretch>> {
        self.stretch.clone()
    }

    /// Wraps a progress callback so that progress extends the deadline.
    pub(crate) fn listening(&self, told: Option<OnProgress>) -> Option<OnProgress> {
        let Some(stretch) = self.stretch.clone() else { return told };
        let mut told = told;
        Some(Box::new(move |at: Progress| {
            stretch.hear();
            if let Some(told) = &mut told {
                told(at);
            }
        }))
    }

    /// Waits for `coming` until the deadline, including its extensions; `None` on timeout.
    pub(crate) async fn wait<T>(&self, coming: impl Future<Output = T>) -> Option<T> {
        let mut coming = pin!(coming);
        let mut by = self.by;
        loop {
            if let Ok(come) = time::timeout_at(by, &mut coming).await {
                return Some(come);
            }
            by = self.moved().filter(|moved| *moved > by)?;
        }
    }

    /// Returns the extended deadline; `None` if the deadline is fixed.
    fn moved(&self) -> Option<Instant> {
        let stretch = self.stretch.as_ref()?;
        let asked = stretch.asked.load(Ordering::Acquire) > 0;
        let since = if asked { Instant::now() } else { stretch.heard() };
        Some(stretch.at_most.min(since + stretch.quiet))
    }
}

impl Stretch {
    /// Pauses the idle timeout until the returned guard is dropped.
    pub(crate) fn ask(self: &Arc<Stretch>) -> Asking {
        self.asked.fetch_add(1, Ordering::AcqRel);
        Asking(self.clone())
    }

    fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn heard(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.hear();
        self.0.asked.fetch_sub(1, Ordering::AcqRel);
    }
}

impl From<Instant> for Until {
    fn from(by: Instant) -> Until {
        Until { by, stretch: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Raw;

    const SECOND: Duration = Duration::from_secs(1);

    fn progress() -> Progress {
        Progress { progress: 0.5, total: None, message: None, raw: Raw::empty_object() }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_moves_the_end_but_not_for_ever() {
        let begun = Instant::now();
        let until = Until::quiet_for(2 * SECOND, begun + 7 * SECOND);
        let mut told = until.listening(None).expect("progress counts");
        let server = async {
            for _ in 0..20 {
                time::sleep(SECOND).await;
                told(progress());
            }
        };
        let waiting = until.wait(std::future::pending::<()>());
        let (given_up, ()) = tokio::join!(async { (waiting.await, begun.elapsed()) }, server);
        assert_eq!(given_up, (None, 7 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_question_is_no_silence() {
        let begun = Instant::now();
        let until = Until::quiet_for(2 * SECOND, begun + 60 * SECOND);
        let stretch = until.stretch().expect("questions count");
        let person = async {
            let asking = stretch.ask();
            time::sleep(9 * SECOND).await;
            drop(asking);
        };
        let waiting = until.wait(std::future::pending::<()>());
        let (given_up, ()) = tokio::join!(async { (waiting.await, begun.elapsed()) }, person);
        assert_eq!(given_up.0, None);
        assert!((11..=13).contains(&given_up.1.as_secs()), "{given_up:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_it() {
        let begun = Instant::now();
        let until = Until::quiet_for(2 * SECOND, begun + 7 * SECOND);
        assert_eq!(until.wait(std::future::pending::<()>()).await, None);
        assert_eq!(begun.elapsed(), 2 * SECOND);
    }
}
