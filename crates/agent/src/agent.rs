//! Runs the agent: asks the model, makes the calls it wants, and reports what happens.
//!
//! A thin driver around [`RunState`], which decides everything. Dropping the future of a run cancels its question and
//! its calls.

use crate::{
    answer::{Answer, AnswerEvent, CallIds},
    client::{ModelClient, ModelEvent},
    events::{AgentEvent, ApprovalQuestion},
    message::{Content, Message},
    model::trouble::Trouble,
    policy::RunRules,
    result_text::CallOutcome,
    run_ending::{RunError, RunReport},
    run_state::{ApprovalAnswer, AskKind, CallToMake, NextStep, RunInputs, RunState},
    toolbox::Toolbox,
    view::{ToolChoice, View},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde_json::Value;
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use wharf_config::AgentSettings;
use wharf_runtime::{Call, CallRecord, Catalog, Handle, Raw, Redactor};

/// Words that ask for a summary.
const SUM_UP: &str = "Sum up the conversation so far: what the user wants, what was done, and every fact, name and \
    number that is needed to go on. Do not call tools.";

/// Decisions about calls, by the id of the call, once they are known.
pub type ApprovalDecisions<'a> = Pin<Box<dyn Future<Output = Vec<(String, ApprovalAnswer)>> + Send + 'a>>;

/// Asks people about calls. The decisions are by the id of the call; a call without one is denied.
pub trait Approver: Send + Sync {
    /// Asks about all undecided calls of one answer.
    fn decide(&self, questions: Vec<ApprovalQuestion>) -> ApprovalDecisions<'_>;
}

/// Runs conversations with one model and the tools of one runtime.
pub struct Agent {
    /// The model.
    pub model: Arc<ModelClient>,
    /// The tools.
    pub tools: Handle,
    /// Replaces secrets in results, events and reports.
    pub redactor: Arc<Redactor>,
}

/// One message of a user, and how to treat it.
pub struct RunRequest {
    /// The message.
    pub message: Vec<Content>,
    /// Instructions for the model.
    pub instructions: String,
    /// Limits and other settings.
    pub settings: AgentSettings,
    /// Rules of the user, beside those of the settings.
    pub rules: RunRules,
    /// Asks people about calls. Without one, calls that need approval are denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// Tools as they are when the run begins.
    pub catalog: Arc<Catalog>,
}

/// End of a run, and the calls that it made.
pub struct RunResult {
    /// How the run ended.
    pub report: RunReport,
    /// The calls, in the order in which they ended.
    pub calls: Vec<Arc<CallRecord>>,
}

type OnEvent<'a> = &'a mut (dyn FnMut(AgentEvent) + Send);

impl Agent {
    /// Runs until the model has answered or something ends the run. `cancel` ends it from outside. The error says
    /// that the settings cannot be used.
    pub async fn run(
        &self,
        request: RunRequest,
        cancel: impl Future<Output = ()>,
        on_event: OnEvent<'_>,
    ) -> Result<RunResult, String> {
        let (conversation_id, run_id) = (Uuid::now_v7().to_string(), Uuid::now_v7().to_string());
        let RunRequest { message, instructions, settings, rules, approver, catalog } = request;
        let toolbox = Toolbox::new(&catalog, &rules, settings.response_format.as_ref())?;
        let limits = settings.limits.clone();
        let state = RunState::new(RunInputs {
            conversation_id: conversation_id.clone(),
            run_id: run_id.clone(),
            message,
            instructions,
            limits: settings.limits,
            rules,
            context: settings.context,
            toolbox,
            model: self.model.options().clone(),
            can_ask: approver.is_some(),
        });
        on_event(AgentEvent::Started { conversation_id: conversation_id.clone(), run_id: run_id.clone() });
        let mut running = RunningAgent {
            agent: self,
            ids: CallIds::new(&run_id),
            deadline: Instant::now() + limits.run_timeout,
            timeout: limits.run_timeout,
            approval_timeout: limits.approval_timeout,
            approver,
            conversation_id,
            state,
            calls: Vec::new(),
            on_event,
        };
        running.drive(pin!(cancel)).await;
        Ok(running.finish())
    }
}

/// A run under way.
struct RunningAgent<'a> {
    agent: &'a Agent,
    ids: CallIds,
    deadline: Instant,
    timeout: Duration,
    approval_timeout: Duration,
    approver: Option<Arc<dyn Approver>>,
    conversation_id: String,
    state: RunState,
    calls: Vec<Arc<CallRecord>>,
    on_event: OnEvent<'a>,
}

impl RunningAgent<'_> {
    async fn drive(&mut self, mut cancel: Pin<&mut impl Future<Output = ()>>) {
        loop {
            let step = self.state.next();
            self.report_events();
            if step == NextStep::End {
                return;
            }
            // The time that a person takes to decide does not count.
            let is_deciding = matches!(step, NextStep::Decide(_));
            let (began, deadline, timeout) = (Instant::now(), self.deadline, self.timeout);
            let stopped = tokio::select! {
                biased;
                () = &mut cancel => RunError::Cancelled,
                () = sleep_until(deadline), if !is_deciding => RunError::Timeout(timeout.as_secs()),
                () = self.take_step(step) => {
                    if is_deciding {
                        self.deadline += began.elapsed();
                    }
                    continue;
                }
            };
            self.state.interrupt(stopped);
        }
    }

    async fn take_step(&mut self, step: NextStep) {
        match step {
            NextStep::Ask(kind) => self.ask(kind).await,
            NextStep::SumUp(messages) => self.sum_up(messages).await,
            NextStep::Decide(questions) => self.decide(questions).await,
            NextStep::Call => self.make_calls().await,
            NextStep::End => {}
        }
    }

    async fn ask(&mut self, kind: AskKind) {
        let messages = self.state.visible();
        let mut offset = 0;
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
            ModelEvent::Retry { trouble, delay } => on_event(AgentEvent::Retry {
                message: trouble.to_string(),
                error_type: trouble.error_type(),
                delay,
            }),
        };
        let question = Question { messages: &messages, tool_choice: kind.tool_choice() };
        let answer =
            question.ask(self.agent, &self.state, &self.conversation_id, &mut self.ids, &mut tell).await;
        self.state.answered(answer);
    }

    async fn sum_up(&mut self, mut messages: Vec<Message>) {
        messages.push(Message::User(vec![Content::Text(SUM_UP.to_owned())]));
        let question = Question { messages: &messages, tool_choice: ToolChoice::Forbidden };
        let answer =
            question.ask(self.agent, &self.state, &self.conversation_id, &mut self.ids, &mut |_| ()).await;
        self.state.summed_up(answer.ok().map(|it| (it.text(), it.usage)));
    }

    async fn decide(&mut self, questions: Vec<ApprovalQuestion>) {
        let ids: Vec<String> = questions.iter().map(|it| it.call_id.clone()).collect();
        for question in &questions {
            (self.on_event)(AgentEvent::ApprovalRequest(question.clone()));
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
                decisions.push((id, ApprovalAnswer { is_allowed: false, reason }));
            }
        }
        self.state.decided(&decisions);
    }

    async fn make_calls(&mut self) {
        let mut running = FuturesUnordered::new();
        loop {
            for call in self.state.start_calls() {
                running.push(make_call(self.agent.tools.clone(), call, self.conversation_id.clone()));
            }
            self.report_events();
            let Some((at, record)) = running.next().await else { return };
            let outcome = redact_outcome(CallOutcome::of(&record), &self.agent.redactor);
            self.state.settled(at, outcome, record.took);
            self.calls.push(record);
        }
    }

    fn report_events(&mut self) {
        for event in self.state.take_events() {
            (self.on_event)(redact_event(event, &self.agent.redactor));
        }
    }

    fn finish(mut self) -> RunResult {
        self.report_events();
        let mut report = self.state.report();
        report.final_output = self.agent.redactor.redact(&report.final_output);
        report.structured = report.structured.map(|it| redact_json(it, &self.agent.redactor));
        (self.on_event)(AgentEvent::Done(Box::new(report.clone())));
        RunResult { report, calls: self.calls }
    }
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
        let tools = agent.model.dialect().write_tools(state.toolbox().specs());
        let view = View {
            conversation_id,
            instructions: state.instructions(),
            tools: &tools,
            tool_choice: self.tool_choice,
            messages: self.messages,
        };
        agent.model.ask(&view, ids, tell).await
    }
}

async fn make_call(tools: Handle, call: CallToMake, conversation_id: String) -> (usize, Arc<CallRecord>) {
    let arguments = Raw::parse(call.arguments).unwrap_or_else(|_| Raw::empty_object());
    let request = Call {
        request_id: Some(call.id),
        thread_id: Some(conversation_id),
        ..Call::new(call.tool_id).arguments(arguments)
    };
    (call.at, tools.call(request).await)
}

fn redact_outcome(mut outcome: CallOutcome, redactor: &Redactor) -> CallOutcome {
    for content in &mut outcome.content {
        if let Content::Text(text) = content {
            *text = redactor.redact(text);
        }
    }
    outcome
}

fn redact_event(mut event: AgentEvent, redactor: &Redactor) -> AgentEvent {
    if let AgentEvent::ToolCall(call) = &mut event {
        call.arguments = redact_json(std::mem::take(&mut call.arguments), redactor);
    }
    event
}

fn redact_json(value: Value, redactor: &Redactor) -> Value {
    let text = value.to_string();
    let redacted = redactor.redact(&text);
    if redacted == text {
        return value;
    }
    serde_json::from_str(&redacted).unwrap_or_else(|_| Value::from("***"))
}
