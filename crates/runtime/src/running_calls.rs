//! The calls in flight: who makes them, since when, and how far they are. An operator can cancel one.
//!
//! A call adds itself and removes itself, which costs one lock each; nothing else happens until somebody asks.

use crate::{
    Fault, FaultKind,
    call::{Call, Stages},
    catalog::ToolEntry,
    fault::Stage,
};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::Notify;
use wharf_mcp::{IdMap, Raw, Sent, session::Progress};

/// One call in flight.
#[derive(Debug)]
pub struct RunningCall {
    /// The request id.
    pub request_id: Arc<str>,
    /// Start time.
    pub started: SystemTime,
    /// The interface that received the call.
    pub via: &'static str,
    /// The authenticated principal, if any.
    pub principal: Option<Arc<str>>,
    tool: OnceLock<Arc<ToolEntry>>,
    progress: Mutex<Option<Progress>>,
    begun: Instant,
    /// Time until the circuit breaker gave a permit, and time spent waiting for a session, in microseconds.
    queue_micros: AtomicU64,
    connect_micros: AtomicU64,
    cancelled: Notify,
}

/// All calls in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningCalls(Arc<Mutex<NumberedCalls>>);

/// Calls by the order in which they began. Only a person who cancels a call looks for a request id.
#[derive(Debug, Default)]
struct NumberedCalls {
    begun: u64,
    calls: IdMap<Arc<RunningCall>>,
}

/// Keeps a call in the list until it is dropped.
pub(crate) struct RunningCallGuard {
    calls: RunningCalls,
    call: Arc<RunningCall>,
    number: u64,
}

impl RunningCalls {
    /// Adds a call.
    pub(crate) fn enter(&self, request_id: Arc<str>, started: SystemTime, call: &Call) -> RunningCallGuard {
        let call = Arc::new(RunningCall {
            request_id,
            started,
            via: call.via,
            principal: call.principal.clone(),
            tool: OnceLock::new(),
            progress: Mutex::default(),
            begun: Instant::now(),
            queue_micros: AtomicU64::new(0),
            connect_micros: AtomicU64::new(0),
            cancelled: Notify::new(),
        });
        let mut numbered = self.lock();
        numbered.begun += 1;
        let number = numbered.begun;
        numbered.calls.insert(number, call.clone());
        drop(numbered);
        RunningCallGuard { calls: self.clone(), call, number }
    }

    /// Returns the calls whose tool is known, the oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<RunningCall>> {
        let mut calls: Vec<_> =
            self.lock().calls.values().filter(|it| it.tool().is_some()).cloned().collect();
        calls.sort_by(|a, b| (a.started, &a.request_id).cmp(&(b.started, &b.request_id)));
        calls
    }

    /// Cancels a call: the latest, if callers chose the same id for several. Returns whether it was in flight.
    pub(crate) fn cancel(&self, request_id: &str) -> bool {
        let numbered = self.lock();
        let matching = numbered.calls.iter().filter(|(_, it)| *it.request_id == *request_id);
        let call = matching.max_by_key(|(number, _)| **number).map(|(_, it)| it.clone());
        drop(numbered);
        call.inspect(|it| it.cancelled.notify_one()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, NumberedCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningCall {
    /// Returns the tool, once its name has been resolved.
    pub fn tool(&self) -> Option<&ToolEntry> {
        self.tool.get().map(|it| &**it)
    }

    /// Returns the last progress, if the caller or a listener wants progress.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_tool(&self, tool: &Arc<ToolEntry>) {
        // A call has one tool, so this is set once.
        let _ = self.tool.set(tool.clone());
    }

    pub(crate) fn set_progress(&self, progress: &Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress.clone());
    }

    /// Notes that the circuit breaker has admitted the call.
    pub(crate) fn admitted(&self) {
        self.queue_micros.store(micros(self.begun.elapsed()), Ordering::Relaxed);
    }

    /// Adds the time that the call has waited for a session.
    pub(crate) fn waited_for_session(&self, since: Instant) {
        self.connect_micros.fetch_add(micros(since.elapsed()), Ordering::Relaxed);
    }

    /// Returns how long the stages before the request took.
    pub(crate) fn stages(&self) -> Stages {
        let read = |it: &AtomicU64| Duration::from_micros(it.load(Ordering::Relaxed));
        Stages { queue: read(&self.queue_micros), connect: read(&self.connect_micros) }
    }

    /// Runs the call until it is cancelled.
    pub(crate) async fn run(
        &self,
        work: impl Future<Output = Result<Raw, Arc<Fault>>>,
    ) -> Result<Raw, Arc<Fault>> {
        tokio::select! {
            biased;
            result = work => result,
            () = self.cancelled.notified() => Err(Arc::new(cancelled())),
        }
    }
}

fn cancelled() -> Fault {
    let cause = "an operator cancelled the call";
    let fault = Fault::local(FaultKind::Abandoned, Stage::Call, cause, None);
    Fault { sent: Sent::Unknown, ..fault }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl std::ops::Deref for RunningCallGuard {
    type Target = Arc<RunningCall>;

    fn deref(&self) -> &Arc<RunningCall> {
        &self.call
    }
}

impl Drop for RunningCallGuard {
    fn drop(&mut self) {
        self.calls.lock().calls.remove(&self.number);
    }
}
