//! Deadlines of requests: either fixed, or an idle timeout that progress extends up to a maximum.

use super::hooks::{OnProgress, Progress};
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
pub(crate) struct Deadline {
    initial: Instant,
    extension: Option<Arc<DeadlineExtension>>,
}

/// Shared state that extends a deadline.
#[derive(Debug)]
pub(crate) struct DeadlineExtension {
    last_progress: Mutex<Instant>,
    /// Number of server questions being answered. While it is above zero, the server is waiting for us, so the idle
    /// timeout does not run.
    open_questions: AtomicUsize,
    idle_timeout: Duration,
    latest: Instant,
}

/// Guard for one server question being answered; pauses the idle timeout until it is dropped.
#[derive(Debug)]
pub(crate) struct IdlePause(Arc<DeadlineExtension>);

impl Deadline {
    /// Creates a deadline `idle_timeout` after the latest progress, at most at `latest`.
    pub(crate) fn with_idle_timeout(idle_timeout: Duration, latest: Instant) -> Deadline {
        let now = Instant::now();
        let extension = DeadlineExtension {
            last_progress: Mutex::new(now),
            open_questions: AtomicUsize::new(0),
            idle_timeout,
            latest,
        };
        Deadline { initial: latest.min(now + idle_timeout), extension: Some(Arc::new(extension)) }
    }

    /// Returns the initial deadline, before any extension.
    pub(crate) fn initial(&self) -> Instant {
        self.initial
    }

    /// Returns the state that pauses the idle timeout while server questions are being answered.
    pub(crate) fn extension(&self) -> Option<Arc<DeadlineExtension>> {
        self.extension.clone()
    }

    /// Wraps a progress callback so that progress extends the deadline.
    pub(crate) fn extend_on_progress(&self, callback: Option<OnProgress>) -> Option<OnProgress> {
        let Some(extension) = self.extension.clone() else { return callback };
        let mut callback = callback;
        Some(Box::new(move |at: Progress| {
            extension.record_progress();
            if let Some(callback) = &mut callback {
                callback(at);
            }
        }))
    }

    /// Waits for `future` until the deadline, including its extensions; `None` on timeout.
    pub(crate) async fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        let mut at = self.initial;
        loop {
            if let Ok(output) = time::timeout_at(at, &mut future).await {
                return Some(output);
            }
            at = self.extended().filter(|extended| *extended > at)?;
        }
    }

    /// Returns the extended deadline; `None` if the deadline is fixed.
    fn extended(&self) -> Option<Instant> {
        let extension = self.extension.as_ref()?;
        let is_paused = extension.open_questions.load(Ordering::Acquire) > 0;
        let since = if is_paused { Instant::now() } else { extension.last_progress() };
        Some(extension.latest.min(since + extension.idle_timeout))
    }
}

impl DeadlineExtension {
    /// Pauses the idle timeout until the returned guard is dropped.
    pub(crate) fn pause(self: &Arc<DeadlineExtension>) -> IdlePause {
        self.open_questions.fetch_add(1, Ordering::AcqRel);
        IdlePause(self.clone())
    }

    fn record_progress(&self) {
        *self.last_progress.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last_progress(&self) -> Instant {
        *self.last_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IdlePause {
    fn drop(&mut self) {
        self.0.record_progress();
        self.0.open_questions.fetch_sub(1, Ordering::AcqRel);
    }
}

impl From<Instant> for Deadline {
    fn from(initial: Instant) -> Deadline {
        Deadline { initial, extension: None }
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
    async fn progress_extends_the_deadline_up_to_the_maximum() {
        let started = Instant::now();
        let deadline = Deadline::with_idle_timeout(2 * SECOND, started + 7 * SECOND);
        let mut callback = deadline.extend_on_progress(None).expect("progress counts");
        let server = async {
            for _ in 0..20 {
                time::sleep(SECOND).await;
                callback(progress());
            }
        };
        let pending = deadline.wait(std::future::pending::<()>());
        let (result, ()) = tokio::join!(async { (pending.await, started.elapsed()) }, server);
        assert_eq!(result, (None, 7 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_question_pauses_the_idle_timeout() {
        let started = Instant::now();
        let deadline = Deadline::with_idle_timeout(2 * SECOND, started + 60 * SECOND);
        let extension = deadline.extension().expect("questions count");
        let person = async {
            let pause = extension.pause();
            time::sleep(9 * SECOND).await;
            drop(pause);
        };
        let pending = deadline.wait(std::future::pending::<()>());
        let (result, ()) = tokio::join!(async { (pending.await, started.elapsed()) }, person);
        assert_eq!(result.0, None);
        assert!((11..=13).contains(&result.1.as_secs()), "{result:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_timeout_ends_the_wait() {
        let started = Instant::now();
        let deadline = Deadline::with_idle_timeout(2 * SECOND, started + 7 * SECOND);
        assert_eq!(deadline.wait(std::future::pending::<()>()).await, None);
        assert_eq!(started.elapsed(), 2 * SECOND);
    }
}
