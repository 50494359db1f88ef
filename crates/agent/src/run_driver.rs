//! Drives one run: takes the steps that [`RunState`] decides, writes its entries, and reports what happens.
//!
//! Entries are written before the step that depends on them: the answer and a mark before its calls are sent, and the
//! results before the next request. Dropping the future of a run cancels its question and its calls.

mod approval_questions;
mod attached;
mod calls_under_way;
mod server_questions;

use crate::{
    agent::{Agent, Approver, OnEvent, RunRequest, RunResult, RunSignals},
    answer::{Answer, AnswerEvent, CallIds},
    client::ModelEvent,
    conversation_store::{ConversationStore, EntryBatch, StoredState},
    dialect::Usage,
    entry::{Entry, EntryBody},
    events::{AgentEvent, ApprovalQuestion},
    history::History,
    message::{Content, Message},
    model::trouble::Trouble,
    model_tape::TapedInput,
    redaction::{redact_event, redact_json},
    run_ending::{RunError, RunReport},
    run_state::{ApprovalAnswer, AskKind, NextStep, RequestSettings, RunCheckpoint, RunInputs, RunState},
    toolbox::{ToolboxSettings, tool_budget},
    view::{ToolChoice, View},
};
use attached::mentions_results;
use calls_under_way::{CallFuture, OnBehalfOf};
use futures_util::stream::FuturesUnordered;
use server_questions::ServerQuestions;
use std::{future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};
use wharf_config::AgentSettings;
use wharf_runtime::{CallRecord, merge_instructions};

/// Words that ask for a summary.
const SUM_UP: &str = "Sum up the conversation so far: what the user wants, what was done, and every fact, name and \
    number that is needed to go on. Do not call tools.";

/// Name of the agent among the interfaces that make calls.
const VIA: &str = "agent";

impl Agent {
    /// Runs until the model has answered or something ends the run. The error says that the settings cannot be used.
    pub async fn run(
        &self,
        mut request: RunRequest,
        signals: RunSignals<impl Future<Output = ()>, impl Future<Output = ()>>,
        on_event: OnEvent<'_>,
    ) -> Result<RunResult, String> {
        let RunRequest { message, earlier, attachments, .. } = &request;
        let input = TapedInput { message, earlier, attachments };
        self.model.tape().record_input(&request.conversation_id, &input, &request.rules);
        let notes = self.attach(&mut request).await;
        let mut driver = RunDriver::new(self, request, on_event)?;
        notes.into_iter().for_each(|it| driver.state.report_context(it));
        let is_waiting = driver.drive(signals).await;
        Ok(driver.finish(is_waiting).await)
    }
}

impl Agent {
    fn toolbox_settings(
        &self,
        settings: &AgentSettings,
        history: &History,
        message: &[Content],
    ) -> ToolboxSettings {
        let users = history.messages.iter().filter_map(Message::as_user).chain([message]);
        let options = self.model.options();
        ToolboxSettings {
            model: options.name.clone(),
            response_format: settings.response_format.clone(),
            result_tools: self.tools.has_handles_for(VIA).then(|| mentions_results(users)),
            budget: tool_budget(&settings.context, options.context_window),
            pins: settings.context.pin.clone(),
        }
    }
}

/// A run under way.
struct RunDriver<'a> {
    agent: &'a Agent,
    ids: CallIds,
    deadline: Instant,
    timeout: Duration,
    approval_timeout: Duration,
    approver: Option<Arc<dyn Approver>>,
    store: Option<Arc<dyn ConversationStore>>,
    can_wait: bool,
    conversation_id: String,
    run_id: String,
    on_behalf_of: OnBehalfOf,
    state: RunState,
    /// Settings that the run keeps when it waits.
    request: RequestSettings,
    /// Tokens and cost that are written already.
    stored_usage: Usage,
    stored_cost_micros: u64,
    questions: ServerQuestions<'a>,
    calls_under_way: FuturesUnordered<CallFuture<'a>>,
    calls: Vec<Arc<CallRecord>>,
    on_event: OnEvent<'a>,
}

impl<'a> RunDriver<'a> {
    fn new(agent: &'a Agent, request: RunRequest, on_event: OnEvent<'a>) -> Result<RunDriver<'a>, String> {
        let RunRequest {
            conversation_id, run_id, mut history, message, mut instructions, mut settings, ..
        } = request;
        let RunRequest { rules, approver, catalog, principal, caller, store, can_wait, decisions, .. } =
            request;
        let RunRequest { inputs, price, earlier, .. } = request;
        let waiting = history.waiting.take().and_then(|it| serde_json::from_value::<RunCheckpoint>(it).ok());
        if let Some(kept) = waiting.as_ref().and_then(|it| it.request.as_ref()) {
            kept.apply(&mut settings, &mut instructions);
        }
        if waiting.is_none() && settings.context.server_instructions {
            let (sources, lock) = (agent.tools.sources(), agent.tools.lock());
            let merged = merge_instructions(&sources, &lock).unwrap_or_default();
            instructions = format!("{instructions}\n\n{merged}").trim().to_owned();
        }
        let toolbox_settings = agent.toolbox_settings(&settings, &history, &message);
        let toolboxes = agent.model.toolboxes();
        let toolbox = match waiting.as_ref().and_then(|it| it.tools.as_deref()) {
            None => toolboxes.toolbox(&catalog, &rules, toolbox_settings)?,
            began_with => toolboxes.build(&catalog, &rules, &toolbox_settings, began_with)?,
        };
        let limits = settings.limits.clone();
        let ids = CallIds::after(&run_id, &history.messages);
        let request = RequestSettings::of(&settings, &instructions);
        let remaining = waiting.as_ref().map_or(limits.run_timeout, |it| it.remaining);
        let questions = ServerQuestions::new(inputs, settings.sampling, limits.approval_timeout);
        let run_inputs = RunInputs {
            conversation_id: conversation_id.clone(),
            run_id: run_id.clone(),
            history,
            earlier,
            message,
            instructions,
            limits: settings.limits,
            rules,
            context: settings.context,
            toolbox,
            model: agent.model.options().clone(),
            can_ask: approver.is_some() || can_wait,
            price,
        };
        let state = begin_or_resume(agent, run_inputs, waiting, &decisions, on_event);
        Ok(RunDriver {
            agent,
            ids,
            deadline: Instant::now() + remaining,
            timeout: limits.run_timeout,
            approval_timeout: limits.approval_timeout,
            approver,
            can_wait: can_wait && store.is_some(),
            store,
            conversation_id,
            run_id,
            on_behalf_of: OnBehalfOf { principal, caller },
            request,
            stored_usage: state.usage(),
            stored_cost_micros: cost_micros(&state),
            questions,
            state,
            calls_under_way: FuturesUnordered::new(),
            calls: Vec::new(),
            on_event,
        })
    }

    /// Takes steps until the run has ended or waits. Returns whether it waits.
    async fn drive(
        &mut self,
        signals: RunSignals<impl Future<Output = ()>, impl Future<Output = ()>>,
    ) -> bool {
        let (mut cancel, mut drain) = (pin!(signals.cancel), pin!(signals.drain));
        loop {
            let step = self.state.next();
            self.store_left_out().await;
            self.report_events();
            let prepared = match &step {
                NextStep::End => return false,
                NextStep::Decide(questions) if self.approver.is_none() && self.can_wait => {
                    let questions = questions.clone();
                    if self.wait_for_decisions(questions).await {
                        return true;
                    }
                    continue;
                }
                NextStep::Call => self.start_calls().await,
                _ => self.write(StoredState::Running).await,
            };
            if let Err(why) = prepared {
                self.stop(RunError::Store(why));
                continue;
            }
            // The time that a person takes to decide does not count.
            let is_deciding = matches!(step, NextStep::Decide(_)) || self.questions.has_asked_people();
            let is_calling = step == NextStep::Call;
            let (began, deadline, timeout) = (Instant::now(), self.deadline, self.timeout);
            let stopped = tokio::select! {
                biased;
                () = &mut cancel => RunError::Cancelled,
                () = &mut drain, if !is_calling => RunError::Interrupted,
                () = sleep_until(deadline), if !is_deciding => RunError::Timeout(timeout.as_secs()),
                () = self.take_step(step) => {
                    if is_deciding {
                        self.deadline += began.elapsed();
                    }
                    continue;
                }
            };
            self.stop(stopped);
        }
    }

    async fn take_step(&mut self, step: NextStep) {
        match step {
            NextStep::Ask(kind) => self.ask(kind).await,
            NextStep::SumUp(messages) => self.sum_up(messages).await,
            NextStep::Decide(questions) => self.decide(questions).await,
            NextStep::Call => self.settle_one_call().await,
            NextStep::End => {}
        }
    }

    /// Ends the run for a reason outside of it. Calls under way are cancelled.
    fn stop(&mut self, error: RunError) {
        self.calls_under_way.clear();
        self.questions.clear();
        self.state.interrupt(error);
    }

    /// Writes the entries since the last write.
    async fn write(&mut self, state: StoredState) -> Result<(), String> {
        let entries = self.state.take_entries();
        let Some(store) = self.store.clone() else { return Ok(()) };
        if entries.is_empty() && state == StoredState::Running {
            return Ok(());
        }
        let (total, stored) = (self.state.usage(), self.stored_usage);
        let usage = Usage {
            input: total.input.saturating_sub(stored.input),
            cached_input: total.cached_input.saturating_sub(stored.cached_input),
            output: total.output.saturating_sub(stored.output),
            reasoning: total.reasoning.saturating_sub(stored.reasoning),
        };
        let total_cost_micros = cost_micros(&self.state);
        let cost_micros = total_cost_micros.saturating_sub(self.stored_cost_micros);
        let written = store.write(EntryBatch { entries, state, usage, cost_micros }).await;
        if written.is_err() {
            // Another run may own the conversation, so nothing more is written.
            self.store = None;
        }
        (self.stored_usage, self.stored_cost_micros) = (total, total_cost_micros);
        written
    }

    /// Stores the questions and what is needed to continue. Returns whether the run waits.
    async fn wait_for_decisions(&mut self, mut questions: Vec<ApprovalQuestion>) -> bool {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        let checkpoint = self.state.checkpoint(remaining, self.request.clone());
        let checkpoint = checkpoint.and_then(|it| serde_json::to_value(it).ok());
        let Some(waiting) = checkpoint else { return false };
        self.prepare_questions(&mut questions).await;
        self.state.push_entry(Entry::of(EntryBody::Waiting { waiting }));
        if let Err(why) = self.write(StoredState::Waiting(questions.clone())).await {
            self.stop(RunError::Store(why));
            return false;
        }
        questions.into_iter().for_each(|it| self.report(AgentEvent::ApprovalRequest(it)));
        true
    }

    async fn ask(&mut self, kind: AskKind) {
        let messages = self.state.visible();
        let (mut offset, mut retries) = (0, Vec::new());
        let on_event = &mut *self.on_event;
        let mut tell = |event: ModelEvent| match event {
            ModelEvent::Delta(AnswerEvent::Text(delta)) => {
                let length = delta.chars().count();
                on_event(AgentEvent::Text { delta, offset });
                offset += length;
            }
            ModelEvent::Delta(AnswerEvent::Reasoning(text)) => on_event(AgentEvent::Thinking(text)),
            ModelEvent::Reset => {
                offset = 0;
                on_event(AgentEvent::Reset);
            }
            ModelEvent::Retry { trouble, delay } => {
                let (message, error_type, hint) = (trouble.to_string(), trouble.error_type(), trouble.hint());
                retries.push(format!("the model is asked again: {message}"));
                on_event(AgentEvent::Retry { message, error_type, hint, delay });
            }
        };
        let question = Question { messages: &messages, tool_choice: kind.tool_choice() };
        let answer =
            question.ask(self.agent, &self.state, &self.conversation_id, &mut self.ids, &mut tell).await;
        for message in retries {
            self.state.push_entry(Entry::of(EntryBody::context(message)));
        }
        self.state.answered(answer);
        let refused = self.state.take_refused_tools();
        self.agent.model.toolboxes().refuse(&self.agent.model.options().name, refused);
    }

    async fn sum_up(&mut self, mut messages: Vec<Message>) {
        messages.push(Message::User(vec![Content::Text(SUM_UP.to_owned())]));
        let question = Question { messages: &messages, tool_choice: ToolChoice::Forbidden };
        let answer =
            question.ask(self.agent, &self.state, &self.conversation_id, &mut self.ids, &mut |_| ()).await;
        self.state.summed_up(answer.ok().map(|it| (it.text(), it.usage)));
    }

    async fn decide(&mut self, mut questions: Vec<ApprovalQuestion>) {
        self.prepare_questions(&mut questions).await;
        let ids: Vec<String> = questions.iter().map(|it| it.call_id.clone()).collect();
        for question in &questions {
            self.report(AgentEvent::ApprovalRequest(question.clone()));
        }
        let mut decisions = match &self.approver {
            Some(approver) => {
                timeout(self.approval_timeout, approver.decide(questions)).await.unwrap_or_default()
            }
            None => Vec::new(),
        };
        for id in ids {
            if !decisions.iter().any(|(decided, _)| *decided == id) {
                let reason = Some("nobody decided in time".to_owned());
                decisions.push((id, ApprovalAnswer { reason, ..ApprovalAnswer::default() }));
            }
        }
        self.agent.model.tape().record_approvals(&self.conversation_id, &decisions);
        self.state.decided(&decisions);
    }

    fn report_events(&mut self) {
        for event in self.state.take_events() {
            self.report(event);
        }
    }

    fn report(&mut self, event: AgentEvent) {
        (self.on_event)(redact_event(event, &self.agent.redactor));
    }

    /// Writes the end of the run, and reports it.
    async fn finish(mut self, is_waiting: bool) -> RunResult {
        self.report_events();
        let mut report = self.state.report();
        if !is_waiting {
            self.state.push_entry(ending(&report));
            if let Err(why) = self.write(StoredState::Ended(report.status())).await {
                report.error.get_or_insert(RunError::Store(why));
            }
            report.final_output = self.agent.redactor.redact(&report.final_output);
            report.structured = report.structured.map(|it| redact_json(it, &self.agent.redactor));
            (self.on_event)(AgentEvent::Done(Box::new(report.clone())));
        }
        RunResult { report, is_waiting, calls: self.calls, messages: self.state.into_new_messages() }
    }
}

/// Begins a run, or continues one with the decisions for which it waited.
fn begin_or_resume(
    agent: &Agent,
    inputs: RunInputs,
    waiting: Option<RunCheckpoint>,
    decisions: &[(String, ApprovalAnswer)],
    on_event: OnEvent<'_>,
) -> RunState {
    let (conversation_id, run_id) = (inputs.conversation_id.clone(), inputs.run_id.clone());
    match waiting {
        Some(checkpoint) => {
            agent.model.tape().record_approvals(&conversation_id, decisions);
            let mut state = RunState::resume(inputs, checkpoint);
            state.decided(decisions);
            state
        }
        None => {
            on_event(AgentEvent::Started { conversation_id, run_id });
            RunState::new(inputs)
        }
    }
}

/// Returns the cost so far in millionths.
fn cost_micros(state: &RunState) -> u64 {
    // A cost beyond the range of the column is cut off.
    state.cost().map_or(0, |it| (it * 1e6).round() as u64)
}

fn ending(report: &RunReport) -> Entry {
    let error = report.to_json()["error"].take();
    let error = Some(error).filter(|it| !it.is_null());
    Entry::of(EntryBody::Ending { status: report.status(), error, turns: report.turns })
}

/// One question to the model.
struct Question<'a> {
    messages: &'a [Message],
    tool_choice: ToolChoice<'a>,
}

impl Question<'_> {
    async fn ask(
        &self,
        agent: &Agent,
        state: &RunState,
        conversation_id: &str,
        ids: &mut CallIds,
        tell: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, Trouble> {
        let tools = state.toolbox().list(agent.model.dialect());
        let view = View {
            conversation_id,
            instructions: state.instructions(),
            tools,
            tool_choice: self.tool_choice,
            messages: self.messages,
        };
        agent.model.ask(&view, ids, tell).await
    }
}
