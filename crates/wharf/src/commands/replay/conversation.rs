//! Repeats the recorded conversations with a model: sends the recorded messages of the user, with the recorded rules.

use crate::{
    app::{App, Connections},
    command_error::CommandError,
    commands::{recording::Recording, run},
    environment::Environment,
};
use serde_json::Value;
use std::{collections::BTreeMap, future, sync::Arc};
use wharf_agent::{
    Agent, ApprovalAnswer, ApprovalDecisions, ApprovalQuestion, Approver, Attachment, RunReport, RunRequest,
    RunRules, RunSignals,
    message::{AnswerMessage, AnswerPart, Content, Message},
};
use wharf_config::Glob;
use wharf_runtime::cassette::{Cassette, CassettePlayer, RecordedStep, StepKind};

/// Sends every recorded message. Returns the errors that ended runs and that the recording does not have.
pub(super) async fn repeat_conversations(
    app: &App,
    recorded: &Cassette,
    recording: &Recording,
    connections: &Connections,
    environment: &Environment,
) -> Result<Vec<String>, CommandError> {
    let agent = replaying_agent(app, recording, connections, environment)?;
    let mut histories: BTreeMap<&str, Vec<Message>> = BTreeMap::new();
    let mut errors = Vec::new();
    for input in recorded.steps_of(StepKind::Input) {
        let history = histories.entry(&input.conversation).or_default();
        let request = RunRequest {
            conversation_id: input.conversation.clone(),
            history: history.clone().into(),
            earlier: members(input, "earlier").filter_map(earlier_message).collect(),
            attachments: members(input, "attachments").filter_map(attachment).collect(),
            ..RunRequest::new(message(input), app.plan.agent.clone(), connections.catalog.clone())
        };
        let request = ReplayRules::of(input).apply(app, recording, request);
        let signals = RunSignals { cancel: future::pending(), drain: future::pending() };
        let ended = agent.run(request, signals, &mut |_| ()).await;
        let result = ended.map_err(|why| CommandError::usage(&why))?;
        errors.extend(unrecorded_error(&result.report));
        history.extend(result.messages);
    }
    Ok(errors)
}

/// Creates the agent of a replay.
pub(in crate::commands) fn replaying_agent(
    app: &App,
    recording: &Recording,
    connections: &Connections,
    environment: &Environment,
) -> Result<Agent, CommandError> {
    let client = run::model::client(app, None, environment, &recording.tape())?;
    Ok(Agent {
        model: Arc::new(client),
        tools: connections.handle.clone(),
        redactor: app.redactor().clone(),
        call_log: None,
    })
}

/// Rules of a recorded run, beside those of agent.yaml.
#[derive(Default)]
pub(in crate::commands) struct ReplayRules {
    allow: Vec<Glob>,
    deny: Vec<Glob>,
    allow_all: bool,
}

impl ReplayRules {
    /// Reads the rules that were recorded with a message of the user.
    pub(in crate::commands) fn of(input: &RecordedStep) -> ReplayRules {
        let globs = |key: &str| -> Vec<Glob> {
            let patterns = input.body.get(key).and_then(|it| it.as_array()).into_iter().flatten();
            patterns.filter_map(|it| it.as_str()).map(Glob::new).collect()
        };
        ReplayRules { allow: globs("allow"), deny: globs("deny"), allow_all: input.body.get("yes").is_some() }
    }

    /// Completes a request as the recorded run had it: instructions, rules and decisions.
    pub(in crate::commands) fn apply(
        self,
        app: &App,
        recording: &Recording,
        request: RunRequest,
    ) -> RunRequest {
        let ReplayRules { allow, deny, allow_all } = self;
        let configured = request.settings.approval.clone();
        let operator = app.agent_policy.approval.clone();
        RunRequest {
            instructions: run::instructions(app),
            rules: RunRules { configured, operator, allow, deny, allow_all },
            approver: recorded_approver(recording, &request.conversation_id),
            ..request
        }
    }
}

/// Reads the message of the user.
fn message(input: &RecordedStep) -> Vec<Content> {
    if let Some(text) = input.body.get("text").and_then(|it| it.as_str()) {
        return vec![Content::Text(text.to_owned())];
    }
    members(input, "content").filter_map(content).collect()
}

/// Returns the items of a list of a step.
fn members<'a>(input: &'a RecordedStep, key: &str) -> impl Iterator<Item = &'a Value> {
    input.body.get(key).and_then(|it| it.as_array()).into_iter().flatten()
}

fn content(part: &Value) -> Option<Content> {
    match (part["text"].as_str(), part["base64"].as_str()) {
        (Some(text), _) => Some(Content::Text(text.to_owned())),
        (None, Some(base64)) => {
            let media_type = part["media_type"].as_str()?.to_owned();
            Some(Content::image(media_type, base64))
        }
        (None, None) => None,
    }
}

fn attachment(part: &Value) -> Option<Attachment> {
    let title = part["title"].as_str()?.to_owned();
    Some(Attachment { title, source: part["source"].as_str().map(str::to_owned), content: content(part)? })
}

/// Reads a message of a prompt: the user's, or an answer.
fn earlier_message(message: &Value) -> Option<Message> {
    if message["role"] == "assistant" {
        let text = message["text"].as_str()?.to_owned();
        let parts = vec![AnswerPart::Text { text, native: None }];
        return Some(Message::Answer(AnswerMessage { parts, model: String::new() }));
    }
    let parts = message["content"].as_array().map_or(std::slice::from_ref(message), Vec::as_slice);
    Some(Message::User(parts.iter().filter_map(content).collect()))
}

/// Returns the error that ended a run, if it says that something is not recorded.
fn unrecorded_error(report: &RunReport) -> Option<String> {
    use wharf_agent::{RunError, model::trouble::Trouble};
    match &report.error {
        Some(RunError::Model(Trouble::NotRecorded(why))) => Some(format!("MCPNotRecordedError: {why}")),
        _ => None,
    }
}

/// Returns an approver that decides as recorded, if the recording has decisions.
pub(in crate::commands) fn recorded_approver(
    recording: &Recording,
    conversation: &str,
) -> Option<Arc<dyn Approver>> {
    let player = recording.player()?;
    player.cassette().steps_of(StepKind::Approval).next()?;
    Some(Arc::new(RecordedApprover { player: player.clone(), conversation: conversation.to_owned() }))
}

/// Decides about calls as people did in the recording.
struct RecordedApprover {
    player: Arc<CassettePlayer>,
    conversation: String,
}

impl Approver for RecordedApprover {
    fn decide(&self, questions: Vec<ApprovalQuestion>) -> ApprovalDecisions<'_> {
        let decisions = questions.into_iter().map(|question| {
            let recorded = self.player.play_approval(&self.conversation);
            let member = |key: &str| recorded.and_then(|it| it.body.get(key));
            let is_set = |key: &str| member(key).and_then(|it| it.as_bool()).unwrap_or(false);
            let answer = ApprovalAnswer {
                is_allowed: is_set("allowed"),
                reason: member("reason").and_then(|it| it.as_str()).map(str::to_owned),
                is_for_tool: is_set("for_tool"),
                by: None,
            };
            (question.call_id, answer)
        });
        let decisions: Vec<(String, ApprovalAnswer)> = decisions.collect();
        Box::pin(future::ready(decisions))
    }
}
