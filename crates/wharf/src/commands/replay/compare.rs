//! Compares what happened in a replay with the recording, conversation by conversation.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use wharf_runtime::cassette::{Cassette, CassetteLine, RecordedOutcome, StepKind, differences};

/// Maximum number of differences that one line of the recording shows.
const MAX_PER_LINE: usize = 5;

/// Result of a replay.
pub(in crate::commands) struct Comparison {
    /// Number of calls that were made.
    pub(super) calls: usize,
    /// Number of times that the model was asked.
    pub(super) turns: usize,
    /// Differences, in the order of the recording.
    pub(super) differences: Vec<String>,
}

/// Compares two recordings. `errors` are those that ended runs.
pub(super) fn compare(recorded: &Cassette, found: &Cassette, errors: Vec<String>) -> Comparison {
    let mut all: Vec<String> = errors;
    let (recorded_events, found_events) = (by_conversation(recorded), by_conversation(found));
    for (conversation, recorded) in &recorded_events {
        let found = found_events.get(conversation).map(Vec::as_slice).unwrap_or_default();
        for (at, recorded) in recorded.iter().enumerate() {
            match found.get(at) {
                Some(found) => all.extend(compare_events(recorded, found)),
                None => all.push(format!("line {}: {} was not repeated", recorded.line, recorded.shown)),
            }
        }
        all.extend(found.iter().skip(recorded.len()).map(|it| format!("not recorded: {}", it.shown)));
    }
    Comparison { calls: found.calls.len(), turns: found.steps_of(StepKind::Model).count(), differences: all }
}

/// One event of a conversation.
struct ComparedEvent {
    line: usize,
    /// Description for people.
    shown: String,
    /// Content without its number, which depends on calls that were not sent.
    content: Value,
    /// Message of a call that is not recorded.
    miss: Option<String>,
}

fn compare_events(recorded: &ComparedEvent, found: &ComparedEvent) -> Vec<String> {
    if let Some(miss) = &found.miss {
        return vec![miss.clone()];
    }
    let found = differences(&found.content, &recorded.content);
    found.into_iter().take(MAX_PER_LINE).map(|it| format!("line {}: {it}", recorded.line)).collect()
}

fn by_conversation(cassette: &Cassette) -> BTreeMap<String, Vec<ComparedEvent>> {
    let mut conversations: BTreeMap<String, Vec<ComparedEvent>> = BTreeMap::new();
    for event in cassette.events() {
        match event {
            CassetteLine::Call(call) => {
                let shown = format!("the call of `{}:{}`", call.source, call.tool);
                let (key, outcome, miss) = match &call.outcome {
                    RecordedOutcome::Result(result) => ("result", result, None),
                    RecordedOutcome::Fault(fault) => ("fault", fault, miss_message(fault)),
                };
                let content = json!({
                    "source": call.source, "tool": call.tool, "arguments": call.arguments, key: outcome,
                });
                let event = ComparedEvent { line: call.line, shown, content, miss };
                conversations.entry(call.conversation).or_default().push(event);
            }
            // A replay sends the recorded message, so nothing asks for the prompts and resources in it again.
            CassetteLine::Step(step) if matches!(step.kind, StepKind::Prompt | StepKind::Read) => {}
            CassetteLine::Step(step) => {
                let shown = match step.kind {
                    StepKind::Input => "the message of the user",
                    StepKind::Model => "the turn of the model",
                    StepKind::Approval => "the decision about a call",
                    StepKind::Prompt => "the prompt",
                    StepKind::Read => "the resource",
                };
                let content = json!({ step.kind.as_str(): step.body });
                let event = ComparedEvent { line: step.line, shown: shown.to_owned(), content, miss: None };
                conversations.entry(step.conversation).or_default().push(event);
            }
            CassetteLine::Header { .. } | CassetteLine::Server(_) | CassetteLine::Other => {}
        }
    }
    conversations
}

fn miss_message(fault: &Value) -> Option<String> {
    let is_miss = fault["type"] == "MCPNotRecordedError";
    fault["message"].as_str().filter(|_| is_miss).map(|it| format!("MCPNotRecordedError: {it}"))
}
