//! Renders what happened in a conversation as text.

use super::explanation::{CallExplanation, ConversationExplanation, RunExplanation, TurnExplanation};
use crate::{
    agent_activity::{format_arguments, format_duration},
    content::printable,
};
use serde_json::Value;
use std::time::Duration;
use wharf_agent::RunStatus;

/// Length of a shown message, in characters.
const MESSAGE_CHARS: usize = 100;

/// Renders a conversation.
pub(super) fn conversation(explanation: &ConversationExplanation) -> String {
    let ConversationExplanation { row, runs } = explanation;
    let mut out = format!(
        "{}  {}\n{}/{}, {}, {} tokens in, {} out{}\n",
        row.id,
        printable(&row.title),
        row.provider,
        row.model,
        row.shown_state(),
        row.input_tokens,
        row.output_tokens,
        cost(row.cost_micros),
    );
    runs.iter().for_each(|it| run(it, &mut out));
    out
}

fn cost(micros: i64) -> String {
    if micros > 0 { format!(", cost {:.6}", micros as f64 / 1e6) } else { String::new() }
}

fn run(run: &RunExplanation, out: &mut String) {
    let status = run.status.map_or("not ended", RunStatus::as_str);
    let error = run.error.as_ref().and_then(|it| it["message"].as_str());
    let error = error.map(|it| format!(" ({})", printable(it))).unwrap_or_default();
    let message: String =
        run.message.lines().next().unwrap_or_default().chars().take(MESSAGE_CHARS).collect();
    out.push_str(&format!("\nrun {}: {status}{error}\n  message: {}\n", run.id, printable(&message)));
    if let Some(offered) = &run.tools {
        out.push_str("  tools:   ");
        tools("offered", offered, out);
    }
    if !run.deferred.is_empty() {
        out.push_str("           ");
        tools("deferred", &run.deferred, out);
    }
    notes(&run.notes, out);
    for (at, it) in run.turns.iter().enumerate() {
        turn(at + 1, it, out);
    }
}

fn tools(how: &str, tools: &[(String, u64)], out: &mut String) {
    let tokens: u64 = tools.iter().map(|(_, tokens)| tokens).sum();
    out.push_str(&format!("{} {how}, about {tokens} tokens\n", tools.len()));
    for (name, tokens) in tools {
        out.push_str(&format!("    {tokens:>6}  {}\n", printable(name)));
    }
}

fn turn(number: usize, turn: &TurnExplanation, out: &mut String) {
    let usage = match turn.usage {
        Some(it) => format!("{} tokens in ({} cached), {} out", it.input, it.cached_input, it.output),
        None => "tokens not reported".to_owned(),
    };
    out.push_str(&format!("  turn {number}:  {usage}\n"));
    for it in &turn.calls {
        let arguments: Value = serde_json::from_str(&it.arguments).unwrap_or_default();
        let name = format!("{} {}", printable(&it.tool_name), format_arguments(&arguments));
        out.push_str(&format!("    {}  {}\n", printable(&it.id), name.trim_end()));
        out.push_str(&format!("      {}\n", outcome(it)));
        out.push_str(&format!("      decided: {}\n", decision(it)));
    }
    notes(&turn.notes, out);
}

fn notes(notes: &[String], out: &mut String) {
    notes.iter().for_each(|it| out.push_str(&format!("    note: {}\n", printable(it))));
}

/// Renders one call in full.
pub(super) fn call(call: &CallExplanation) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    format!(
        "{}  {}\ntool:      {}\narguments: {}\noutcome:   {}\ndecided:   {}\ndigest:    {}\nresult:\n{}\n",
        printable(&call.id),
        printable(&call.tool_name),
        printable(&call.tool_id),
        printable(&format!("{arguments:#}")),
        outcome(call),
        decision(call),
        call.digest,
        printable(&call.result),
    )
}

fn outcome(call: &CallExplanation) -> String {
    let duration = call.duration.filter(|it| it.is_finite() && *it >= 0.0).map(Duration::from_secs_f64);
    let duration = duration.map(|it| format!(" in {}", format_duration(it))).unwrap_or_default();
    let fate = call.fate.map(|it| format!(", {}", it.as_str())).unwrap_or_default();
    format!("{}{duration}{fate}", call.status.as_deref().unwrap_or("no result"))
}

fn decision(call: &CallExplanation) -> String {
    let person = call.decision.as_ref().map(|it| {
        let word = if it.is_allowed { "allowed" } else { "denied" };
        let scope = if it.is_for_tool { " this tool" } else { "" };
        let reason = it.reason.as_ref().map(|it| format!(": {}", printable(it))).unwrap_or_default();
        format!("{} {word}{scope}{reason}", printable(&it.by))
    });
    let why = Some(printable(&call.why)).filter(|it| !it.is_empty());
    // The result of a call that was not sent says why.
    person.or(why).unwrap_or_else(|| printable(call.result.lines().next().unwrap_or("not sent")))
}
