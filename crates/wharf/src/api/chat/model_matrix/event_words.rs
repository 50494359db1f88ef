//! Writes the events of a run as words, so that a row can name them.

use std::collections::BTreeMap;
use wharf_agent::{AgentEvent, ToolStatus};

/// Longest group of words that is written once with the number of its repetitions.
const MAX_GROUP: usize = 3;

/// Returns the events between `started` and `done`. The words say if these are not the first and the last one.
pub(super) fn event_words(events: &[AgentEvent]) -> String {
    let [AgentEvent::Started { .. }, between @ .., AgentEvent::Done(_)] = events else {
        return format!("no `started` or no `done`: {events:?}");
    };
    let mut words: Vec<String> = Vec::new();
    let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
    for event in between {
        match event {
            AgentEvent::ToolCall(call) if call.status == ToolStatus::InProgress => continue,
            AgentEvent::ToolCall(call) => *calls.entry(call.status.as_str()).or_default() += 1,
            AgentEvent::Error { error_type, call_id: Some(_), .. } => {
                *calls.entry(error_type).or_default() += 1
            }
            event => {
                push_calls(&mut words, &mut calls);
                let word = word(event);
                // The number of deltas differs between dialects.
                if !matches!(event, AgentEvent::Text { .. } | AgentEvent::Thinking(_))
                    || words.last() != Some(&word)
                {
                    words.push(word);
                }
            }
        }
    }
    push_calls(&mut words, &mut calls);
    fold(&words)
}

fn word(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Usage(usage) if usage.is_estimated => "usage(estimated)".to_owned(),
        AgentEvent::Retry { error_type, .. } | AgentEvent::Error { error_type, .. } => {
            format!("error:{error_type}")
        }
        event => event.to_json().0.to_owned(),
    }
}

/// Adds the calls of one answer as one word, because calls may end in any order.
fn push_calls(words: &mut Vec<String>, calls: &mut BTreeMap<&str, usize>) {
    let counts: Vec<String> = calls.iter().map(|(what, count)| format!("{what} {count}")).collect();
    if !counts.is_empty() {
        words.push(format!("tool_call({})", counts.join(", ")));
    }
    calls.clear();
}

/// Joins the words, and writes repeated groups once.
fn fold(words: &[String]) -> String {
    let (mut out, mut rest) = (Vec::new(), words);
    while !rest.is_empty() {
        let repetitions = |size: usize| rest.chunks(size).take_while(|it| *it == &rest[..size]).count();
        let sizes = (1..=MAX_GROUP.min(rest.len())).filter(|size| repetitions(*size) > 1);
        let size = sizes.max_by_key(|size| size * repetitions(*size)).unwrap_or(1);
        let group = rest[..size].join(" ");
        out.push(match (size, repetitions(size)) {
            (_, 1) => group,
            (1, count) => format!("{group}*{count}"),
            (_, count) => format!("({group})*{count}"),
        });
        rest = &rest[size * repetitions(size)..];
    }
    out.join(" ")
}
