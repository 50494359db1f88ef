//! Until when an answer is waited for: a moment, or as long as the server shows progress, up to a moment.

use super::wire::{OnProgress, Progress};
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{self, Instant};

/// The end of somebody's patience.
#[derive(Clone, Debug)]
pub(crate) struct Until {
    by: Instant,
    stretch: Option<Arc<Stretch>>,
}

/// What moves the end.
#[derive(Debug)]
struct Stretch {
    heard: Mutex<Instant>,
    quiet: Duration,
    at_most: Instant,
}

impl Until {
    /// `quiet` after the latest progress, and never later than `at_most`.
    pub(crate) fn quiet_for(quiet: Duration, at_most: Instant) -> Until {
        let now = Instant::now();
        let stretch = Stretch { heard: Mutex::new(now), quiet, at_most };
        Until { by: at_most.min(now + quiet), stretch: Some(Arc::new(stretch)) }
    }

    /// The end, as long as nothing has been heard.
    pub(crate) fn by(&self) -> Instant {
        self.by
    }

    /// Who is to be told about progress so that it counts.
    pub(crate) fn listening(&self, told: Option<OnProgress>) -> Option<OnProgress> {
        let Some(stretch) = self.stretch.clone() else { return told };
        let mut told = told;
        Some(Box::new(move |at: Progress| {
            *stretch.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            if let Some(told) = &mut told {
                told(at);
            }
        }))
    }

    /// What comes in time.
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

    fn moved(&self) -> Option<Instant> {
        let stretch = self.stretch.as_ref()?;
        let heard = *stretch.heard.lock().unwrap_or_else(PoisonError::into_inner);
        Some(stretch.at_most.min(heard + stretch.quiet))
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
    async fn silence_ends_it() {
        let begun = Instant::now();
        let until = Until::quiet_for(2 * SECOND, begun + 7 * SECOND);
        assert_eq!(until.wait(std::future::pending::<()>()).await, None);
        assert_eq!(begun.elapsed(), 2 * SECOND);
    }
}
