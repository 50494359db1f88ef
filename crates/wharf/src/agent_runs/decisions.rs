//! Decisions of people about calls: records them, and continues the runs that wait for them.

use super::{AgentRuns, LimitChanges, NewRun, RunEvents, RunStart, StartError, change_model, unread};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::time::timeout;
use wharf_agent::StoredState;
use wharf_store::{ApprovalRow, BeginError, StoreError, time_before};

/// Intervals of looking for decided and expired questions, with and without open ones.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);
const IDLE_INTERVAL: Duration = Duration::from_secs(10);

/// Decision about one call.
#[derive(Clone, Debug)]
pub(crate) struct CallDecision {
    pub(crate) approval_id: String,
    /// Digest of the call that the decision is for. Protocols that cannot carry it name the question only, which is
    /// about one call too.
    pub(crate) digest: Option<String>,
    pub(crate) is_allowed: bool,
    /// Whether the decision holds for every call of the tool in the conversation.
    pub(crate) is_for_tool: bool,
    pub(crate) reason: Option<String>,
}

/// A run that continues after decisions.
pub(crate) struct ContinuedRun {
    /// Events from then on.
    pub(crate) events: RunEvents,
    /// The calls that were decided.
    pub(crate) call_ids: Vec<String>,
}

/// Reason why a decision is not accepted.
#[derive(Debug)]
pub(crate) enum DecideError {
    /// The principal has no such question. Contains its id.
    Unknown(String),
    /// The decision is for another call, or too late.
    Stale(&'static str),
    /// The database failed.
    Store(StoreError),
}

impl From<StoreError> for DecideError {
    fn from(error: StoreError) -> DecideError {
        DecideError::Store(error)
    }
}

impl AgentRuns {
    /// Records the decision of a principal. With `owner`, only about calls of that principal's conversations.
    pub(crate) async fn decide(
        &self,
        owner: Option<&str>,
        decided_by: &str,
        decision: &CallDecision,
    ) -> Result<ApprovalRow, DecideError> {
        let store = self.shared.conversations.store();
        let id = decision.approval_id.as_str();
        let unknown = || DecideError::Unknown(id.to_owned());
        let found = store.approval(id).await?.ok_or_else(unknown)?;
        if store.conversation(&found.conversation_id, owner).await?.is_none() {
            return Err(unknown());
        }
        if decision.digest.as_ref().is_some_and(|it| *it != found.digest) {
            return Err(DecideError::Stale("the digest is that of another call"));
        }
        let word = if decision.is_allowed { "allow" } else { "deny" };
        let scope = if decision.is_for_tool { "tool" } else { "once" };
        let decided =
            store.decide_approval(id, (word, scope, decision.reason.as_deref()), decided_by).await?;
        if !decided {
            return Err(DecideError::Stale("the question is decided or has expired"));
        }
        tracing::info!(
            target: "wharf::agent",
            approval_id = id, conversation_id = found.conversation_id, run_id = found.run_id,
            decision = word, scope, decided_by, "call decided"
        );
        Ok(store.approval(id).await?.unwrap_or(found))
    }

    /// Continues the conversation that a client calls so, like [`AgentRuns::continue_decided`].
    pub(crate) async fn continue_named(
        &self,
        principal: &Arc<str>,
        name: &str,
        decisions: &[CallDecision],
        new_run: NewRun,
    ) -> Result<ContinuedRun, StartError> {
        let found = self.shared.conversations.find_named(principal, name).await;
        let id = found.map_err(BeginError::Store)?.ok_or(BeginError::Unknown)?;
        self.continue_decided(principal, &id, decisions, new_run).await
    }

    /// Records decisions about the calls for which a conversation waits, and continues its run.
    pub(crate) async fn continue_decided(
        &self,
        principal: &Arc<str>,
        conversation_id: &str,
        decisions: &[CallDecision],
        new_run: NewRun,
    ) -> Result<ContinuedRun, StartError> {
        let store = self.shared.conversations.store();
        let row = store.conversation(conversation_id, Some(principal)).await.map_err(BeginError::Store)?;
        let run_id = row.ok_or(BeginError::Unknown)?.run_id.unwrap_or_default();
        let questions = store.approvals_of(conversation_id, &run_id).await.map_err(BeginError::Store)?;
        let is_asked = |it: &&CallDecision| questions.iter().any(|asked| asked.id == it.approval_id);
        if let Some(unknown) = decisions.iter().find(|it| !is_asked(it)) {
            return Err(DecideError::Unknown(unknown.approval_id.clone()).into());
        }
        let _claim = self.claim(&run_id);
        for decision in decisions {
            self.decide(Some(principal), principal, decision).await?;
        }
        let decided = store.approvals_of(conversation_id, &run_id).await.map_err(BeginError::Store)?;
        let now = time_before(Duration::ZERO);
        let undecided = decided.iter().filter(|it| it.decision.is_none() && it.expires_at > now).count();
        if undecided > 0 {
            return Err(StartError::Undecided(undecided));
        }
        let events = self.resume(conversation_id, &run_id, new_run).await?;
        Ok(ContinuedRun { events, call_ids: questions.into_iter().map(|it| it.call_id).collect() })
    }

    /// Continues the run of a conversation that waits, if its questions are decided or it is cancelled.
    pub(super) async fn resume(
        &self,
        conversation_id: &str,
        run_id: &str,
        new_run: NewRun,
    ) -> Result<RunEvents, StartError> {
        let shared = &self.shared;
        let row = shared.conversations.store().conversation(conversation_id, None).await;
        let Some(row) = row.map_err(BeginError::Store)? else { return Err(BeginError::Unknown.into()) };
        let plan = shared.registry.registered().file.clone();
        let model = plan.model.as_ref().ok_or_else(|| StartError::NoModel("there is no model".to_owned()))?;
        let client = shared.models.client(model).map_err(StartError::UnusableModel)?;
        let client = change_model(client, &new_run.model_changes)?;
        let principal: Arc<str> = row.principal.into();
        let mut request = self.request(&plan, &principal, LimitChanges::default())?;
        let (begun, decisions) = shared.conversations.resume(conversation_id, run_id).await?;
        conversation_id.clone_into(&mut request.conversation_id);
        run_id.clone_into(&mut request.run_id);
        request.history = begun.history;
        request.store = Some(begun.kept.clone());
        request.can_wait = true;
        request.decisions = decisions;
        let kept = begun.kept.clone();
        let started = self.spawn(client, new_run, RunStart { request, kept: Some(begun.kept) });
        if started.is_err() {
            // The run waits again, with its decisions, until there is room for it.
            kept.release(StoredState::Waiting(Vec::new())).await;
        }
        started
    }

    /// Looks at once for runs whose questions are decided.
    pub(crate) fn wake(&self) {
        self.shared.decided.notify_one();
    }

    /// Continues runs whose questions are decided or expired. Never returns.
    pub(crate) async fn follow_decisions(&self) {
        let store = self.shared.conversations.store();
        let mut failures = HashMap::new();
        loop {
            match store.decided_conversations().await {
                Ok(decided) => self.resume_all(decided, &mut failures).await,
                Err(error) => {
                    tracing::warn!(target: "wharf::agent", "decisions cannot be read: {error}");
                }
            }
            let has_waiting = store.has_waiting_conversations().await.unwrap_or(false);
            let pause = if has_waiting { EXPIRY_INTERVAL } else { IDLE_INTERVAL };
            let _ = timeout(pause, self.shared.decided.notified()).await;
        }
    }

    /// Continues runs. `failures` has the reasons why runs did not continue the last time, so that each is logged once.
    async fn resume_all(&self, decided: Vec<(String, String)>, failures: &mut HashMap<String, String>) {
        failures.retain(|failed, _| decided.iter().any(|(_, run_id)| run_id == failed));
        for (conversation_id, run_id) in decided {
            if self.shared.claimed.lock().unwrap_or_else(PoisonError::into_inner).contains(&run_id) {
                continue;
            }
            let error = match self.resume(&conversation_id, &run_id, unread()).await {
                // Another replica or a request continues it.
                Ok(_) | Err(StartError::Conversation(BeginError::Busy(_))) => continue,
                // It is tried again until there is room.
                Err(StartError::TooMany(_)) => continue,
                Err(error) => format!("{error:?}"),
            };
            if failures.get(&run_id) != Some(&error) {
                tracing::warn!(target: "wharf::agent", conversation_id, "a run that waited cannot continue: {error}");
                failures.insert(run_id, error);
            }
        }
    }

    /// Keeps [`AgentRuns::follow_decisions`] from continuing a run.
    fn claim(&self, run_id: &str) -> RunClaim {
        self.shared.claimed.lock().unwrap_or_else(PoisonError::into_inner).insert(run_id.to_owned());
        RunClaim { runs: self.clone(), run_id: run_id.to_owned() }
    }
}

/// A request's right to continue a run that waits.
struct RunClaim {
    runs: AgentRuns,
    run_id: String,
}

impl Drop for RunClaim {
    fn drop(&mut self) {
        self.runs.shared.claimed.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.run_id);
        // Decisions without a continued run are the others' again.
        self.runs.wake();
    }
}
