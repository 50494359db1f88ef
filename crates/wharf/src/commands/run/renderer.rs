//! Prints the events of a run: the answer to stdout, everything else to stderr.

use crate::{
    agent_activity::describe_activity, content::printable, markdown::MarkdownStream, output::Output,
};
use serde_json::{Value, json};
use std::io::{self, IsTerminal};
use wharf_agent::{AgentEvent, RunResult, ToolCallEvent, ToolStatus};
use wharf_runtime::views;

/// Content of stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum RunFormat {
    /// The text of the answers.
    Text,
    /// One document at the end.
    Json,
    /// One line per event.
    Events,
}

/// Prints events.
pub(in crate::commands) struct Renderer {
    output: Output,
    format: RunFormat,
    /// Whether text is printed as it arrives. Without a terminal, an answer is printed when it is whole, because
    /// printed text cannot be taken back.
    is_live: bool,
    /// Text of the current answer that is not printed yet.
    pending: String,
    is_line_open: bool,
    /// Renders the text of an answer that is printed as it arrives, if it is Markdown.
    markdown: Option<MarkdownStream>,
    /// Whether a line about a denied call says how to allow it.
    names_flags: bool,
}

impl Renderer {
    pub(in crate::commands) fn new(output: Output, format: RunFormat) -> Renderer {
        let is_live = io::stdout().is_terminal();
        let (pending, is_line_open) = (String::new(), false);
        Renderer { output, format, is_live, pending, is_line_open, markdown: None, names_flags: true }
    }

    /// Renders the answers of a conversation at a terminal.
    pub(in crate::commands) fn for_conversation(output: Output) -> Renderer {
        let is_terminal = io::stdout().is_terminal();
        let markdown = is_terminal.then(|| MarkdownStream::new(output.colour.is_enabled(true)));
        Renderer { markdown, names_flags: !is_terminal, ..Renderer::new(output, RunFormat::Text) }
    }

    /// Prints one event.
    pub(in crate::commands) fn show(&mut self, event: &AgentEvent) {
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
    pub(in crate::commands) fn finish(&mut self, result: &RunResult) {
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
                match &mut self.markdown {
                    Some(markdown) => self.pending.push_str(&markdown.push(delta)),
                    None => self.pending.push_str(&printable(delta)),
                }
                if self.is_live {
                    self.print_pending();
                }
            }
            AgentEvent::Reset => {
                self.pending.clear();
                self.end_markdown();
                self.end_line();
                if self.is_live {
                    self.output.print_info("note: the model begins its answer again");
                }
            }
            // It follows every whole answer.
            AgentEvent::Usage(_) => {
                self.end_markdown();
                self.print_pending();
                self.end_line();
            }
            _ => {}
        }
    }

    fn end_markdown(&mut self) {
        if let Some(markdown) = &mut self.markdown {
            self.pending.push_str(&markdown.finish());
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
        let Some(mut line) = describe_activity(event) else { return };
        if let AgentEvent::ToolCall(ToolCallEvent { status: ToolStatus::Denied, tool_id, .. }) = event
            && self.names_flags
        {
            line.push_str(&printable(&format!("; allow it with --allow '{tool_id}' or --yes")));
        }
        self.end_line();
        self.output.print_info(&line);
    }
}
