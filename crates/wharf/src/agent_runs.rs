//! Owns the agent's runs inside `wharf serve`: starts them from the running plan, bounds them, and ends them at
//! shutdown.
//!
//! Every protocol that talks to the agent starts its runs with [`AgentRuns::start`] and turns the [`RunEvents`] into
//! its own format. Each run is a task that [`AgentRuns::finish`] joins.

mod active_runs;
mod decisions;
mod explanations;
mod live_questions;
mod models;
mod new_run;
mod older_events;
mod rule_warnings;
mod run_log;
mod run_task;

use crate::{
    agent_model::model_price,
    conversations::{Conversations, KeptRun, RunAgent, RunConversation, new_conversation_id},
    journal::Journal,
    registry::SourceRegistry,
};
use active_runs::ActiveRuns;
pub(crate) use decisions::{CallDecision, DecideError};
use live_questions::LivePeople;
pub(crate) use live_questions::{LiveAnswer, LiveQuestions};
pub(crate) use models::Models;
pub(crate) use new_run::{AskedPeople, ConversationName, LimitChanges, NewRun, StartError};
use run_log::{LogStep, NumberedEvent, RunLog, RunReader};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use wharf_agent::{
    AgentEvent, Approver, InputAnswerer, RunReport, RunRequest, RunRules, RunStatus, StoredState,
    client::ModelClient, message::Content, model::ModelChanges,
};
use wharf_config::{AgentPolicy, AgentSettings, MaskedString, Plan};
use wharf_runtime::{BreakerSnapshot, BreakerState, Caller, Catalog, Handle, Redactor};
use wharf_store::{BeginError, time_before};

/// Interval of deleting old conversations.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3_600);
/// How long runs may take to end at shutdown, after their calls have ended.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The agent's runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentRuns {
    shared: Arc<RunsState>,
}

struct RunsState {
    handle: Handle,
    journal: Journal,
    registry: SourceRegistry,
    redactor: Arc<Redactor>,
    models: Models,
    conversations: Conversations,
    active: Arc<ActiveRuns>,
    /// Runs that are cancelled while they wait.
    cancelled: Mutex<HashSet<String>>,
    decided: Notify,
    /// Runs that a request continues, so that [`AgentRuns::follow_decisions`] leaves them alone.
    claimed: Mutex<HashSet<String>>,
    live_questions: Arc<LiveQuestions>,
    policy: AgentPolicy,
    tasks: Mutex<JoinSet<()>>,
    draining: watch::Receiver<bool>,
}

/// The events of a run that was started. Dropping it cancels the run, unless the run continues unread.
pub(crate) struct RunEvents {
    pub(crate) conversation_id: String,
    pub(crate) run_id: String,
    reader: RunReader,
}

/// A run that a client can follow from its beginning.
#[derive(Clone)]
pub(crate) struct RunHandle {
    conversation_id: String,
    run_id: String,
    log: Arc<RunLog>,
}

impl RunHandle {
    /// Reads the events from the beginning, as far as they are kept.
    pub(crate) fn read(&self) -> RunEvents {
        let (conversation_id, run_id) = (self.conversation_id.clone(), self.run_id.clone());
        RunEvents { conversation_id, run_id, reader: self.log.read_after(0) }
    }

    /// Returns whether the run has ended without an answer and sent no call, so that another run repeats nothing.
    pub(crate) fn is_without_effect(&self, is_answer: impl Fn(&RunReport) -> bool) -> bool {
        self.log.is_without_effect(is_answer)
    }
}

impl RunEvents {
    /// Returns a handle of the run. It does not keep the run from being cancelled.
    pub(crate) fn handle(&self) -> RunHandle {
        let (conversation_id, run_id) = (self.conversation_id.clone(), self.run_id.clone());
        RunHandle { conversation_id, run_id, log: self.reader.log() }
    }

    /// Waits for the next event. [`AgentEvent::Done`] is the last one; a run that is aborted at shutdown has none.
    pub(crate) async fn next(&mut self) -> Option<(u64, Arc<AgentEvent>)> {
        let NumberedEvent { number, event } = self.reader.next().await?;
        Some((number, event))
    }

    /// Waits for the next event, or for the end of what this stream can tell.
    pub(crate) async fn next_step(&mut self) -> RunStep {
        match self.reader.next_step().await {
            LogStep::Event(it) => RunStep::Event(it.event),
            LogStep::Paused => RunStep::Waiting,
            LogStep::End => RunStep::End,
        }
    }
}

#[cfg(test)]
impl RunEvents {
    /// Returns the events of a run in which nothing happens.
    pub(crate) fn silent() -> RunEvents {
        let name = || "silent".to_owned();
        RunEvents { conversation_id: name(), run_id: name(), reader: RunLog::new().read_after(0) }
    }
}

/// Next step of a run, as a client sees it.
pub(crate) enum RunStep {
    /// An event.
    Event(Arc<AgentEvent>),
    /// The run waits for decisions about calls.
    Waiting,
    /// The log of the run ends.
    End,
}

impl AgentRuns {
    pub(crate) fn new(
        handle: Handle,
        journal: Journal,
        registry: SourceRegistry,
        models: Models,
        policy: AgentPolicy,
        draining: watch::Receiver<bool>,
    ) -> AgentRuns {
        let redactor = models.redactor().clone();
        let conversations = Conversations::new(journal.store().clone(), redactor.clone());
        let shared = RunsState {
            handle,
            journal,
            registry,
            redactor,
            models,
            conversations,
            active: Arc::default(),
            cancelled: Mutex::default(),
            decided: Notify::new(),
            claimed: Mutex::default(),
            live_questions: Arc::default(),
            policy,
            tasks: Mutex::default(),
            draining,
        };
        AgentRuns { shared: Arc::new(shared) }
    }

    /// Starts a run that keeps nothing, with the model, instructions and settings of the running agent file.
    pub(crate) fn start(&self, principal: &Arc<str>, new_run: NewRun) -> Result<RunEvents, StartError> {
        let plan = self.shared.registry.registered().file.clone();
        let client = change_model(self.client(&plan)?, &new_run.model_changes)?;
        let request = self.request(&plan, principal, new_run.limits)?;
        self.spawn(client, new_run, RunStart { request, kept: None })
    }

    /// Starts a run in a kept conversation, or in a new one.
    pub(crate) async fn start_kept(
        &self,
        principal: &Arc<str>,
        conversation: ConversationName,
        mut new_run: NewRun,
    ) -> Result<RunEvents, StartError> {
        let plan = self.shared.registry.registered().file.clone();
        let client = change_model(self.client(&plan)?, &new_run.model_changes)?;
        let agent = run_agent(&plan);
        let mut request = self.request(&plan, principal, new_run.limits)?;
        let conversations = &self.shared.conversations;
        let existing = match conversation {
            ConversationName::New => None,
            ConversationName::Id(id) => Some(id),
            ConversationName::OfClient(name) => {
                let opened = conversations.open_named(principal, &name, &agent).await;
                Some(opened.map_err(BeginError::Store)?)
            }
        };
        let is_new = existing.is_none();
        request.conversation_id = existing.unwrap_or_else(new_conversation_id);
        let id = &*request.conversation_id;
        let conversation = if is_new { RunConversation::New(id) } else { RunConversation::Existing(id) };
        let message = (first_text(&new_run.message), &agent);
        let begun = conversations.begin((principal, conversation), &request.run_id, message).await?;
        request.history = begun.history;
        request.store = Some(begun.kept.clone());
        request.can_wait = true;
        new_run.history = Vec::new();
        let failed = begun.kept.clone();
        let started = self.spawn(client, new_run, RunStart { request, kept: Some(begun.kept) });
        match (&started, is_new) {
            (Ok(_), _) => {}
            (Err(_), true) => failed.discard().await,
            (Err(_), false) => failed.release(StoredState::Ended(RunStatus::Failed)).await,
        }
        started
    }

    /// Returns a request with the model, instructions and settings of the agent file, within the operator's limits.
    fn request(
        &self,
        plan: &Plan,
        principal: &Arc<str>,
        limits: LimitChanges,
    ) -> Result<RunRequest, StartError> {
        let policy = &self.shared.policy;
        let mut settings: AgentSettings = plan.agent.clone();
        settings.limits.tighten(&policy.limits);
        limits.tighten(&mut settings.limits);
        let name = plan.model.as_ref().map(|it| it.name.expose()).unwrap_or_default();
        let missing = if limits.max_cost.is_some() { StartError::NoPrice } else { StartError::NoModel };
        let price = model_price(policy, name, &settings.limits).map_err(missing)?;
        let instructions = plan.instructions.as_ref().map_or_else(String::new, |it| it.expose().to_owned());
        let configured = settings.approval.clone();
        Ok(RunRequest {
            instructions,
            rules: RunRules { configured, operator: policy.approval.clone(), ..RunRules::default() },
            price,
            principal: Some(principal.clone()),
            caller: Some(Caller::without_client(principal.clone())),
            ..RunRequest::new(Vec::new(), settings, Arc::new(Catalog::default()))
        })
    }

    fn spawn(
        &self,
        client: Arc<ModelClient>,
        new_run: NewRun,
        RunStart { mut request, kept }: RunStart,
    ) -> Result<RunEvents, StartError> {
        let shared = &self.shared;
        request.message = new_run.message;
        (request.earlier, request.attachments) = (new_run.earlier, new_run.attachments);
        if !new_run.history.is_empty() {
            request.history = new_run.history.into();
        }
        let principal: Arc<str> = request.principal.clone().unwrap_or_default();
        let (approver, inputs) = self.people(&request, new_run.people);
        (request.approver, request.inputs) = (approver, inputs);
        request.settings.response_format = new_run.response_format.or(request.settings.response_format);
        if let Some(instructions) = new_run.instructions {
            request.instructions = format!("{}\n\n{instructions}", request.instructions).trim().to_owned();
        }
        let (conversation_id, run_id) = (request.conversation_id.clone(), request.run_id.clone());
        let is_cancelled = shared.cancelled.lock().unwrap_or_else(PoisonError::into_inner).contains(&run_id);
        let guard =
            shared.active.add(&conversation_id, &run_id, &principal, new_run.continues_unread, is_cancelled);
        let guard = guard.map_err(StartError::TooMany)?;
        let continues_unread = guard.run.continues_unread || guard.run.log.is_resumed_unread();
        let reader = guard.run.log.read_new();
        let unread_grace = (!continues_unread).then_some(new_run.unread_grace);
        let work = run_task::run(self.clone(), client, RunStart { request, kept }, guard, unread_grace);
        let mut tasks = shared.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
        Ok(RunEvents { conversation_id, run_id, reader })
    }

    /// Returns who decides about calls while they wait for it, and who answers servers.
    fn people(&self, request: &RunRequest, people: AskedPeople) -> RunPeople {
        let live = |wait: Duration| {
            Arc::new(LivePeople {
                questions: self.shared.live_questions.clone(),
                principal: request.principal.clone().unwrap_or_default(),
                conversation_id: request.conversation_id.clone(),
                run_id: request.run_id.clone(),
                redactor: self.shared.redactor.clone(),
                wait,
            })
        };
        match people {
            AskedPeople::Client => (None, Some(live(Duration::MAX))),
            AskedPeople::Others => match self.shared.policy.openai_approval_wait {
                Duration::ZERO => (None, None),
                wait => (Some(live(wait)), Some(live(wait))),
            },
        }
    }

    /// Attaches to the run of a conversation, after the event of this number. `None` if none is under way here.
    pub(crate) fn attach(&self, conversation_id: &str, after: u64) -> Option<RunEvents> {
        let found = self.shared.active.find(conversation_id)?;
        let (conversation_id, run_id) = (conversation_id.to_owned(), found.run_id.clone());
        Some(RunEvents { conversation_id, run_id, reader: found.log.read_after(after) })
    }

    /// Cancels the run of a conversation. Returns whether there is one here.
    pub(crate) async fn cancel(&self, conversation_id: &str) -> Result<bool, StartError> {
        let found = self.shared.active.find(conversation_id);
        if let Some(run) = found.as_ref().filter(|it| !it.is_waiting()) {
            run.cancel();
            return Ok(true);
        }
        let row = self.shared.conversations.store().conversation(conversation_id, None).await;
        let row = row.map_err(BeginError::Store)?.filter(|it| it.state == "waiting");
        let Some(run_id) = row.and_then(|it| it.run_id) else { return Ok(false) };
        // A waiting run ends by continuing it without a decision: its calls are denied.
        if let Some(run) = found {
            run.cancel();
        }
        self.shared.cancelled.lock().unwrap_or_else(PoisonError::into_inner).insert(run_id.clone());
        self.resume(conversation_id, &run_id, unread()).await.map(|_| true)
    }

    /// Deletes conversations that have not changed for this time. Never returns.
    pub(crate) async fn sweep(&self, keep: Duration) {
        loop {
            let before = time_before(keep);
            match self.shared.conversations.store().delete_old_conversations(before).await {
                Ok(0) => {}
                Ok(count) => tracing::info!(target: "wharf::agent", count, "old conversations are deleted"),
                Err(error) => {
                    tracing::warn!(target: "wharf::agent", "old conversations cannot be deleted: {error}");
                }
            }
            sleep(SWEEP_INTERVAL).await;
        }
    }

    /// Returns the questions of runs under way.
    pub(crate) fn live_questions(&self) -> &Arc<LiveQuestions> {
        &self.shared.live_questions
    }

    pub(crate) fn conversations(&self) -> &Conversations {
        &self.shared.conversations
    }

    /// Returns the agent and model of the running agent file.
    pub(crate) fn run_agent(&self) -> RunAgent {
        run_agent(&self.shared.registry.registered().file)
    }

    /// Returns the client of the configured model, if it can be asked now.
    fn client(&self, plan: &Plan) -> Result<Arc<ModelClient>, StartError> {
        if *self.shared.draining.borrow() {
            return Err(StartError::ShuttingDown);
        }
        let missing =
            "the agent needs 'model'\nhelp: add `model: {provider: ollama, name: qwen3}` to agent.yaml";
        let model = plan.model.as_ref().ok_or_else(|| StartError::NoModel(missing.to_owned()))?;
        let client = self.shared.models.client(model).map_err(StartError::UnusableModel)?;
        match client.breaker().snapshot().state {
            BreakerState::Open { until } if until > Instant::now() => {
                Err(StartError::BreakerOpen(until - Instant::now()))
            }
            _ => Ok(client),
        }
    }

    /// Checks that the configured model can be asked now.
    pub(crate) fn check_model(&self) -> Result<(), StartError> {
        self.client(&self.shared.registry.registered().file).map(drop)
    }

    /// Returns the name of the agent, and whether it has a model.
    pub(crate) fn agent_name(&self) -> (Option<String>, bool) {
        let file = &self.shared.registry.registered().file;
        (file.name.as_ref().map(|it| it.shown().to_owned()), file.model.is_some())
    }

    /// Returns how long a run of the running agent file may take.
    pub(crate) fn run_timeout(&self) -> Duration {
        let limit = self.shared.registry.registered().file.agent.limits.run_timeout;
        limit.min(self.shared.policy.limits.run_timeout)
    }

    /// Returns the circuit breakers of the models, by the name of the provider.
    pub(crate) fn breakers(&self) -> Vec<(String, BreakerSnapshot)> {
        // The breaker of the configured model is shown before its first use.
        if let Some(model) = &self.shared.registry.registered().file.model {
            let _ = self.shared.models.client(model);
        }
        self.shared.models.breakers()
    }

    /// Closes the circuit breakers of a provider. Returns whether there are any.
    pub(crate) fn reset_breakers(&self, provider: &str) -> bool {
        self.shared.models.reset_breakers(provider)
    }

    /// Adopts the breaker state that another replica has determined. Returns whether the key is that of a model.
    pub(crate) fn follow_breaker(&self, key: &str, state: BreakerState) -> bool {
        self.shared.models.follow_breaker(key, state)
    }

    /// Waits a moment for runs to end, and aborts those that do not. Their calls have ended before.
    pub(crate) async fn finish(&self) {
        let mut tasks =
            std::mem::take(&mut *self.shared.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = timeout(END_TIMEOUT, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.shutdown().await;
    }
}

/// People who decide about calls, and people who answer servers.
type RunPeople = (Option<Arc<dyn Approver>>, Option<Arc<dyn InputAnswerer>>);

/// A request, and the store that it writes to.
struct RunStart {
    request: RunRequest,
    kept: Option<Arc<KeptRun>>,
}

/// Returns a client with the options of a request.
fn change_model(client: Arc<ModelClient>, changes: &ModelChanges) -> Result<Arc<ModelClient>, StartError> {
    if *changes == ModelChanges::default() {
        return Ok(client);
    }
    client.with_changes(changes).map(Arc::new).map_err(StartError::UnknownOption)
}

/// Returns a run that continues without a client.
fn unread() -> NewRun {
    NewRun { continues_unread: true, ..NewRun::default() }
}

fn run_agent(plan: &Plan) -> RunAgent {
    let text = |it: Option<&MaskedString>| it.map(|it| it.shown().to_owned()).unwrap_or_default();
    RunAgent {
        agent: text(plan.name.as_ref()),
        provider: plan.model.as_ref().map(|it| it.provider.as_str().to_owned()).unwrap_or_default(),
        model: text(plan.model.as_ref().map(|it| &it.name)),
    }
}

fn first_text(message: &[Content]) -> &str {
    let text = |it: &'_ Content| matches!(it, Content::Text(_));
    match message.iter().find(|it| text(it)) {
        Some(Content::Text(text)) => text,
        _ => "",
    }
}
