//! The runs under way and those that wait with a client attached: how many there are, whose they are, and how to
//! cancel each.

use super::RunLog;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;

/// Maximum number of runs at a time, and of one principal.
const MAX_RUNS: usize = 64;
const MAX_RUNS_PER_PRINCIPAL: usize = 8;

/// Runs by the id of their conversation.
#[derive(Debug, Default)]
pub(super) struct ActiveRuns(Mutex<HashMap<String, Arc<ActiveRun>>>);

/// One run.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) run_id: String,
    principal: Arc<str>,
    pub(super) log: Arc<RunLog>,
    cancelled: watch::Sender<bool>,
    /// Whether the run continues when no client reads its events.
    pub(super) continues_unread: bool,
    is_waiting: AtomicBool,
}

/// Keeps a run in the list while it is under way. Ends its log, unless the run waits.
#[derive(Debug)]
pub(super) struct RunGuard {
    runs: Arc<ActiveRuns>,
    conversation_id: String,
    pub(super) run: Arc<ActiveRun>,
}

impl ActiveRuns {
    /// Adds a run, or takes up one that waits. The error is the limit, if there are too many runs. A run that is cancelled
    /// only ends, so it needs no room.
    pub(super) fn add(
        self: &Arc<ActiveRuns>,
        conversation_id: &str,
        run_id: &str,
        principal: &Arc<str>,
        continues_unread: bool,
        is_cancelled: bool,
    ) -> Result<RunGuard, usize> {
        let mut runs = self.runs();
        runs.retain(|_, it| !(it.is_waiting() && it.log.is_unread()));
        if !is_cancelled {
            check_room(&runs, principal)?;
        }
        let waiting = runs.get(conversation_id).filter(|it| it.run_id == run_id).cloned();
        let run = waiting.unwrap_or_else(|| {
            Arc::new(ActiveRun {
                run_id: run_id.to_owned(),
                principal: principal.clone(),
                log: RunLog::new(),
                cancelled: watch::Sender::new(false),
                continues_unread,
                is_waiting: AtomicBool::new(false),
            })
        });
        run.is_waiting.store(false, Ordering::Relaxed);
        run.log.set_paused(false);
        runs.insert(conversation_id.to_owned(), run.clone());
        drop(runs);
        Ok(RunGuard { runs: self.clone(), conversation_id: conversation_id.to_owned(), run })
    }

    pub(super) fn find(&self, conversation_id: &str) -> Option<Arc<ActiveRun>> {
        self.runs().get(conversation_id).cloned()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, Arc<ActiveRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that one more run may begin. The error is the limit.
fn check_room(runs: &HashMap<String, Arc<ActiveRun>>, principal: &Arc<str>) -> Result<(), usize> {
    let under_way = runs.values().filter(|it| !it.is_waiting());
    if under_way.clone().count() >= MAX_RUNS {
        return Err(MAX_RUNS);
    }
    let of_principal = under_way.filter(|it| it.principal == *principal).count();
    if of_principal >= MAX_RUNS_PER_PRINCIPAL { Err(MAX_RUNS_PER_PRINCIPAL) } else { Ok(()) }
}

impl ActiveRun {
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Waits until the run is cancelled.
    pub(super) async fn cancelled(&self) {
        let mut cancelled = self.cancelled.subscribe();
        let _ = cancelled.wait_for(|it| *it).await;
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }
}

impl RunGuard {
    /// Keeps the log open for attached clients, because the run continues after decisions.
    pub(super) fn set_waiting(&self) {
        self.run.is_waiting.store(true, Ordering::Relaxed);
        self.run.log.set_paused(true);
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        if !self.run.is_waiting() {
            self.runs.runs().remove(&self.conversation_id);
            self.run.log.close();
        }
    }
}
