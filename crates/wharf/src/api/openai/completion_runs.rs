//! The runs of chat completions, by their request, so that a client that repeats a request gets the run that it began.

use super::chunks::{CompletionHead, finish_reason};
use crate::agent_runs::{RunEvents, RunHandle};
use sha2::{Digest, Sha256};
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use wharf_agent::RunReport;

/// Maximum number of runs that can be joined.
const MAX_RUNS: usize = 64;

/// Principal and body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompletionKey([u8; 32]);

impl CompletionKey {
    pub(super) fn of(principal: &str, body: &[u8]) -> CompletionKey {
        let digest = Sha256::new().chain_update(principal.len().to_le_bytes());
        CompletionKey(digest.chain_update(principal).chain_update(body).finalize().into())
    }
}

/// A completion whose run has been started.
pub(super) struct StartedCompletion {
    pub(super) events: RunEvents,
    pub(super) head: CompletionHead,
}

struct KnownRun {
    key: CompletionKey,
    /// Time until which the run can be joined.
    until: Instant,
    run: RunHandle,
    head: CompletionHead,
}

/// Latest runs of chat completions.
#[derive(Default)]
pub(in crate::api) struct CompletionRuns(Mutex<VecDeque<KnownRun>>);

impl CompletionRuns {
    /// Remembers a run for as long as it may take.
    pub(super) fn add(
        &self,
        key: CompletionKey,
        events: &RunEvents,
        head: &CompletionHead,
        run_timeout: Duration,
    ) {
        let mut runs = self.runs();
        runs.retain(|it| it.key != key);
        while runs.len() >= MAX_RUNS {
            runs.pop_front();
        }
        let until = Instant::now() + run_timeout;
        runs.push_back(KnownRun { key, until, run: events.handle(), head: head.clone() });
    }

    /// Returns the run of an equal request, from its beginning. One that ended without an answer is forgotten if it sent no
    /// call, because the client repeats the request to get an answer.
    pub(super) fn join(&self, key: &CompletionKey) -> Option<StartedCompletion> {
        let mut runs = self.runs();
        let is_answer = |report: &RunReport| finish_reason(report).is_some();
        runs.retain(|it| it.until > Instant::now() && !it.run.is_without_effect(is_answer));
        let found = runs.iter().find(|it| it.key == *key)?;
        Some(StartedCompletion { events: found.run.read(), head: found.head.clone() })
    }

    fn runs(&self) -> MutexGuard<'_, VecDeque<KnownRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_separates_principal_and_body() {
        assert_eq!(CompletionKey::of("a", b"bc"), CompletionKey::of("a", b"bc"));
        assert_ne!(CompletionKey::of("a", b"bc"), CompletionKey::of("ab", b"c"));
    }
}
