//! Answers what servers ask during the calls of a run: asks people, and asks the model as far as the policy allows.

use super::RunDriver;
use crate::{
    agent::Agent,
    answer::{Answer, CallIds},
    consent::{
        InputAnswer, InputAnswerer, InputKind, InputQuestion, QuestionBody, QuestionInbox, QuestionReply,
        SamplingRequest, ServerQuestion, sampling_result,
    },
    dialect::Usage,
    estimate::{estimate_message, estimate_tokens},
    events::AgentEvent,
    model::{ModelChanges, trouble::Trouble},
    view::{ToolChoice, View},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::timeout;
use uuid::Uuid;
use wharf_config::{Decision, SamplingPolicy};
use wharf_runtime::{Caller, Raw, RpcError, upstream::Answerable};

/// Maximum number of questions to the model during one call.
const MAX_SAMPLES_PER_CALL: u64 = 5;
/// Code of the error for a prompt that was not allowed, as the protocol has it.
const REJECTED: i64 = -1;

type AnswerFuture<'a> = Pin<Box<dyn Future<Output = AnsweredQuestion> + Send + 'a>>;

/// Questions of servers, and those that are being answered.
pub(super) struct ServerQuestions<'a> {
    inbox: QuestionInbox,
    answerer: Option<Arc<dyn InputAnswerer>>,
    sampling: SamplingPolicy,
    timeout: Duration,
    under_way: FuturesUnordered<AnswerFuture<'a>>,
    /// Number of open questions to people.
    asked_people: usize,
    /// Number of questions to the model, by call.
    samples: HashMap<String, u64>,
}

/// Something that happened to a question.
pub(super) enum QuestionStep {
    Asked(ServerQuestion),
    Answered(AnsweredQuestion),
}

/// A question that has its answer.
pub(super) struct AnsweredQuestion {
    source: String,
    reply: QuestionReply,
    answer: Result<Raw, RpcError>,
    /// Whether a person was asked.
    is_by_person: bool,
    /// Words for the record about what happened.
    note: Option<&'static str>,
    /// Usage of a question to the model, reported or estimated.
    usage: Option<(Option<Usage>, Usage)>,
}

impl<'a> ServerQuestions<'a> {
    pub(super) fn new(
        answerer: Option<Arc<dyn InputAnswerer>>,
        sampling: SamplingPolicy,
        timeout: Duration,
    ) -> ServerQuestions<'a> {
        let has_people = answerer.is_some();
        let samples = sampling.is_possible();
        let answers = Answerable { forms: has_people, links: has_people, samples, roots: false };
        ServerQuestions {
            inbox: QuestionInbox::new(answers),
            answerer,
            sampling,
            timeout,
            under_way: FuturesUnordered::new(),
            asked_people: 0,
            samples: HashMap::new(),
        }
    }

    /// Returns the caller of one call, whose questions come here. Without people and sampling the caller stays as it is.
    pub(super) fn answer_for(&self, caller: Option<Caller>, call_id: &str) -> Option<Caller> {
        if self.answerer.is_none() && !self.sampling.is_possible() {
            return caller;
        }
        let consent = self.inbox.consent(call_id);
        Some(caller.unwrap_or_default().with_consent(Arc::new(consent)))
    }

    /// Checks whether a person is being asked.
    pub(super) fn has_asked_people(&self) -> bool {
        self.asked_people > 0
    }

    /// Waits for the next question or answer. Cancel-safe.
    pub(super) async fn next(&mut self) -> QuestionStep {
        tokio::select! {
            Some(question) = self.inbox.next() => QuestionStep::Asked(question),
            Some(answered) = self.under_way.next() => QuestionStep::Answered(answered),
            // The inbox has a sender as long as it lives.
            else => std::future::pending().await,
        }
    }

    /// Withdraws all questions.
    pub(super) fn clear(&mut self) {
        self.under_way.clear();
        self.asked_people = 0;
    }
}

impl<'a> RunDriver<'a> {
    pub(super) fn take_question_step(&mut self, step: QuestionStep) {
        match step {
            QuestionStep::Answered(answered) => self.finish_question(answered),
            QuestionStep::Asked(question) => {
                let ServerQuestion { call_id, source, body, reply } = question;
                match body {
                    QuestionBody::Input(input) => self.ask_for_input(source, input, reply),
                    QuestionBody::Sampling(request) => self.ask_for_sample(call_id, source, request, reply),
                }
            }
        }
    }

    fn finish_question(&mut self, answered: AnsweredQuestion) {
        let AnsweredQuestion { source, reply, answer, is_by_person, note, usage } = answered;
        self.questions.asked_people -= usize::from(is_by_person);
        if let Some(note) = note {
            self.state.report_context(format!("{source} {note}"));
        }
        if let Some((reported, estimated)) = usage {
            self.state.add_sampling(&source, reported, estimated);
        }
        // The server may be gone.
        let _ = reply.send(answer);
    }

    fn ask_for_input(&mut self, source: String, question: InputQuestion, reply: QuestionReply) {
        let is_form = matches!(question.kind, InputKind::Form(_));
        let asked = question.clone();
        let Some(person) = self.ask_person(question) else {
            let _ = reply.send(Ok(InputAnswer::Decline.to_result(is_form)));
            return;
        };
        self.questions.under_way.push(Box::pin(async move {
            let mut answer = person.await;
            if let InputAnswer::Accept(content) = &answer
                && asked.check_content(content).is_err()
            {
                answer = InputAnswer::Decline;
            }
            let note = Some(match answer {
                InputAnswer::Accept(_) => "asked for input, which a person gave",
                InputAnswer::Decline => "asked for input, which was declined",
                InputAnswer::Cancel => "asked for input, which was cancelled",
            });
            let answer = Ok(answer.to_result(is_form));
            AnsweredQuestion { source, reply, answer, is_by_person: true, note, usage: None }
        }));
    }

    fn ask_for_sample(
        &mut self,
        call_id: String,
        source: String,
        mut request: SamplingRequest,
        reply: QuestionReply,
    ) {
        let count = self.questions.samples.entry(call_id.clone()).or_default();
        *count += 1;
        let rejected = match self.questions.sampling.decide(&source) {
            Decision::Deny => Some("the configuration does not allow sampling"),
            _ if *count > MAX_SAMPLES_PER_CALL => Some("the call has asked the model too often"),
            _ if self.state.spent_limit().is_some() => Some("a limit of the run is reached"),
            Decision::Ask if self.questions.answerer.is_none() => Some("nobody is there to ask"),
            Decision::Ask | Decision::Allow => None,
        };
        if let Some(why) = rejected {
            let _ = reply.send(Err(RpcError::new(REJECTED, why)));
            return;
        }
        let person = match self.questions.sampling.decide(&source) {
            Decision::Ask => self.ask_person(InputQuestion {
                input_id: String::new(),
                call_id,
                source: source.clone(),
                kind: InputKind::Sampling(request.prompt.clone()),
                message: format!("{source} wants to ask the model something"),
                expires_at: None,
            }),
            _ => None,
        };
        let (agent, conversation_id) = (self.agent, self.conversation_id.clone());
        request.redact(&agent.redactor);
        self.questions.under_way.push(Box::pin(async move {
            let is_by_person = person.is_some();
            let is_allowed = match person {
                Some(person) => matches!(person.await, InputAnswer::Accept(_)),
                None => true,
            };
            let (answer, usage, note) = match is_allowed {
                true => {
                    let (answer, usage) = sample(agent, &conversation_id, &request).await;
                    (answer, usage, None)
                }
                false => {
                    let declined = RpcError::new(REJECTED, "the user rejected the sampling request");
                    (Err(declined), None, Some("wanted to ask the model, which was declined"))
                }
            };
            AnsweredQuestion { source, reply, answer, is_by_person, note, usage }
        }));
    }

    /// Reports a question and asks it. `None` if nobody can be asked.
    fn ask_person(
        &mut self,
        mut question: InputQuestion,
    ) -> Option<impl Future<Output = InputAnswer> + Send + use<>> {
        let answerer = self.questions.answerer.clone()?;
        let limit = self.questions.timeout;
        question.input_id = Uuid::now_v7().to_string();
        question.expires_at = SystemTime::now().checked_add(limit);
        let event = crate::redaction::redact_event(AgentEvent::InputRequest(question), &self.agent.redactor);
        let AgentEvent::InputRequest(question) = &event else { return None };
        let question = question.clone();
        (self.on_event)(event);
        self.questions.asked_people += 1;
        Some(async move {
            // Nobody answered in time.
            timeout(limit, answerer.answer(question)).await.unwrap_or(InputAnswer::Decline)
        })
    }
}

/// Asks the model what a server wants to know. Returns the answer, and the usage if there was one.
async fn sample(
    agent: &Agent,
    conversation_id: &str,
    request: &SamplingRequest,
) -> (Result<Raw, RpcError>, Option<(Option<Usage>, Usage)>) {
    let SamplingRequest { messages, instructions, changes, .. } = request;
    // A temperature that the model's API does not have is left out.
    let without_temperature = ModelChanges { temperature: None, ..changes.clone() };
    let client =
        agent.model.with_changes(changes).or_else(|_| agent.model.with_changes(&without_temperature));
    let client = match client {
        Ok(client) => client,
        Err(option) => {
            let why = format!("the model has no option `{option}`");
            return (Err(RpcError::new(RpcError::INTERNAL, why)), None);
        }
    };
    let tools = client.dialect().write_tools(&[]);
    let view = View { conversation_id, instructions, tools: &tools, tool_choice: ToolChoice::Auto, messages };
    let mut ids = CallIds::new("sampling");
    let answer: Result<Answer, Trouble> = client.ask(&view, &mut ids, &mut |_| ()).await;
    match answer {
        Ok(answer) => {
            let input = messages.iter().map(estimate_message).sum::<u64>() + estimate_tokens(instructions);
            let estimated = Usage { input, output: estimate_tokens(&answer.text()), ..Usage::default() };
            let result = sampling_result(&answer, &client.options().name, &agent.redactor);
            (Ok(result), Some((answer.usage, estimated)))
        }
        Err(trouble) => (Err(RpcError::new(RpcError::INTERNAL, trouble.to_string())), None),
    }
}
