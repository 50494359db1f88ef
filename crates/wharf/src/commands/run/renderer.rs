//! Prints the events of a run: the answer to stdout, everything else to stderr.

use crate::{content::printable, output::Output};
use serde_json::{Value, json};
use std::{
    io::{self, IsTerminal},
    time::Duration,
};
use wharf_agent::{AgentEvent, RunResult, ToolCallEvent, ToolStatus};
use wharf_runtime::views;

/// Maximum length of a shown argument, in characters.
const MAX_SHOWN_CHARS: usize = 60;

/// Content of stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunFormat {
    /// The text of the answers.
    Text,
    /// One document at the end.
    Json,
    /// One line per event.
    Events,
}

/// Prints events.
pub(super) struct Renderer {
    output: Output,
    format: RunFormat,
    /// Whether text is printed as it arrives. Without a terminal, an answer is printed when it is whole, because
    /// printed text cannot be taken back.
    is_live: bool,
    /// Text of the current answer that is not printed yet.
    pending: String,
    is_line_open: bool,
}

impl Renderer {
    pub(super) fn new(output: Output, format: RunFormat) -> Renderer {
        let is_live = io::stdout().is_terminal();
        Renderer { output, format, is_live, pending: String::new(), is_line_open: false }
    }

    /// Prints one event.
    pub(super) fn show(&mut self, event: &AgentEvent) {
        match self.format {
            RunFormat::Events => {
                let (name, data) = event.to_json();
                self.output.data(&format!("{}\n", json!({ "event": name, "data": data })));
            }
            RunFormat::Json => self.show_activity(event),
            RunFormat::Text => {
                self.show_text(event);
                self.show_activity(event);
            }
        }
    }

    /// Prints the end of a run.
    pub(super) fn finish(&mut self, result: &RunResult) {
        match self.format {
            RunFormat::Events => {}
            RunFormat::Json => {
                let mut document = result.report.to_json();
                let calls = result.calls.iter().map(|it| views::context(it).decode_or_default::<Value>());
                document["tool_calls"] = calls.collect();
                self.output.json(&document);
            }
            RunFormat::Text => {
                self.end_line();
                if let Some(error) = &result.report.error {
                    let help = error.hint().map_or_else(String::new, |it| format!("help: {it}\n"));
                    self.output.print_error(&format!("error: {}\n{help}", printable(&error.to_string())));
                }
            }
        }
    }

    fn show_text(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Text { delta, .. } => {
                self.pending.push_str(&printable(delta));
                if self.is_live {
                    self.print_pending();
                }
            }
            AgentEvent::Reset => {
                self.pending.clear();
                self.end_line();
            }
            // It follows every whole answer.
            AgentEvent::Usage(_) => {
                self.print_pending();
                self.end_line();
            }
            _ => {}
        }
    }

    fn print_pending(&mut self) {
        if !self.pending.is_empty() {
            self.output.data(&self.pending);
            self.is_line_open = !self.pending.ends_with('\n');
            self.pending.clear();
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_line_open) {
            self.output.data("\n");
        }
    }

    fn show_activity(&mut self, event: &AgentEvent) {
        let line = match event {
            AgentEvent::ToolCall(call) => describe_call(call),
            AgentEvent::Retry { message, delay, .. } => {
                Some(format!("retry in {}: {message}", format_duration(*delay)))
            }
            AgentEvent::Context(what) => Some(format!("note: {what}")),
            AgentEvent::Error { message, .. } => Some(format!("warning: {message}")),
            _ => None,
        };
        if let Some(line) = line {
            self.end_line();
            self.output.print_info(&printable(&line));
        }
    }
}

fn describe_call(call: &ToolCallEvent) -> Option<String> {
    let result = || shorten(call.result.as_deref().unwrap_or_default().lines().next().unwrap_or_default());
    let duration = call.duration.map(format_duration).unwrap_or_default();
    match call.status {
        ToolStatus::InProgress => {
            Some(format!("→ {} {}", call.tool_name, format_arguments(&call.arguments)).trim_end().to_owned())
        }
        ToolStatus::Completed if call.duration.is_none() => None,
        ToolStatus::Completed => Some(format!("← {duration}")),
        ToolStatus::Failed | ToolStatus::Unknown => {
            Some(format!("← {} {}: {}", call.tool_name, call.status.as_str(), result()))
        }
        ToolStatus::Denied => {
            Some(format!("← {} denied; allow it with --allow '{}' or --yes", call.tool_name, call.tool_id))
        }
        ToolStatus::AwaitingApproval => None,
    }
}

/// Formats arguments as `key=value`, shortened.
pub(super) fn format_arguments(arguments: &Value) -> String {
    let Some(arguments) = arguments.as_object() else { return shorten(&arguments.to_string()) };
    let pairs = arguments.iter().map(|(key, value)| format!("{key}={}", shorten(&value.to_string())));
    printable(&pairs.collect::<Vec<_>>().join(" "))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn format_duration(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}
