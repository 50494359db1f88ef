//! Behaviours of a provider in every wire format, and how a run ends that meets them, as data.
//!
//! A row is one line: what the provider replies, how the agent classifies it, the events that a client sees, the HTTP
//! status, the exit code, and whether the circuit breaker of the model counts a failure. The rows know nothing of the
//! agent; tests that run it compare.

mod calls;
mod edit;
mod ends;
mod loops;
mod shape;
mod sizes;
mod trouble;

use crate::{Reply, Wire};

/// Replies of the provider in one wire format. The last one repeats. Without any, nothing listens.
type Replies = fn(Wire) -> Vec<Reply>;

/// One behaviour, and its consequences.
#[derive(Clone, Copy, Debug)]
pub struct MatrixRow {
    /// Group of behaviours.
    pub group: &'static str,
    /// Name of the behaviour.
    pub name: &'static str,
    /// Replies of the provider.
    pub replies: Replies,
    /// Wire formats that can show the behaviour.
    pub wires: &'static [Wire],
    /// Classification of the first reply: the error, the number of calls, or the reason of the end. Empty if the run
    /// ends before.
    pub class: &'static str,
    /// Events between `started` and `done`. Neighbours of one name are one word, and `(a b)*3` is repeated.
    pub events: &'static str,
    /// End of the run.
    pub end: RunEnd,
    /// Lines for the section `model` of agent.yaml.
    pub model: &'static str,
    /// Lines for agent.yaml.
    pub settings: &'static str,
}

/// End of a run, for every kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// HTTP status of a chat without a stream.
    pub http: u16,
    /// Exit code of the command.
    pub exit: u8,
    /// Status of the run.
    pub status: &'static str,
    /// Type of the error, empty without one.
    pub error_type: &'static str,
    /// Whether the circuit breaker of the model counts a failure.
    pub is_counted: bool,
}

const fn end(
    http: u16,
    exit: u8,
    status: &'static str,
    error_type: &'static str,
    is_counted: bool,
) -> RunEnd {
    RunEnd { http, exit, status, error_type, is_counted }
}

const FINISHED: RunEnd = end(200, 0, "finished", "", false);
const LIMIT: RunEnd = end(200, 1, "limit", "limit_reached", false);
const REFUSED: RunEnd = end(200, 1, "refused", "content_filtered", false);
const CONTEXT_FULL: RunEnd = end(422, 1, "failed", "context_full", false);
const NO_ACCESS: RunEnd = end(502, 2, "failed", "model_api_error", false);
const BAD_REQUEST: RunEnd = end(502, 76, "failed", "model_api_error", false);
const TOOL_REFUSED: RunEnd = end(502, 69, "failed", "model_api_error", false);
const UNREACHABLE: RunEnd = end(502, 69, "failed", "model_api_error", true);
const SERVER: RunEnd = end(502, 76, "failed", "model_api_error", true);
const PROTOCOL: RunEnd = end(502, 76, "failed", "model_protocol_error", true);
const RATE_LIMITED: RunEnd = end(429, 75, "failed", "rate_limited", false);
const OVERLOADED: RunEnd = end(429, 75, "failed", "rate_limited", true);
const SILENT: RunEnd = end(504, 124, "failed", "timeout", true);
const DEADLINE: RunEnd = end(504, 124, "timeout", "timeout", false);

/// Events of an answer of text.
const TEXT: &str = "response_delta usage";
/// Events of an answer with one call, and of the answer after it.
const ONE_CALL: &str = "usage tool_call(completed 1) response_delta usage";
/// Events of an answer with two calls, and of the answer after it.
const TWO_CALLS: &str = "usage tool_call(completed 2) response_delta usage";
/// Events of an answer with a call that is made and one that is refused in words, and of the answer after it.
const ONE_REFUSED: &str =
    "usage tool_call(completed 1, failed 1, invalid_tool_arguments 1) response_delta usage";
/// Events of four tries that showed text.
const RESETS: &str = "(response_delta reset error:model_protocol_error)*3 response_delta reset";
/// Events of four tries that showed nothing.
const RETRIES: &str = "error:model_protocol_error*3";

/// Wire formats of server-sent events.
const SSE: &[Wire] = &[Wire::Responses, Wire::Chat, Wire::Anthropic, Wire::Gemini];
/// Wire formats with arguments as text.
const TEXT_ARGUMENTS: &[Wire] = &[Wire::Responses, Wire::Chat, Wire::Anthropic];
/// Wire formats with arguments as JSON in the event.
const JSON_ARGUMENTS: &[Wire] = &[Wire::Gemini, Wire::Ollama];

impl MatrixRow {
    const fn only(self, wires: &'static [Wire]) -> MatrixRow {
        MatrixRow { wires, ..self }
    }

    const fn model(self, model: &'static str) -> MatrixRow {
        MatrixRow { model, ..self }
    }

    const fn settings(self, settings: &'static str) -> MatrixRow {
        MatrixRow { settings, ..self }
    }

    /// Returns whether one gateway can run the row among others: without retries, settings of its own, the whole length
    /// of a stream, or a rate limit that holds for the next row.
    pub fn is_immediate(&self) -> bool {
        let is_long = matches!(self.name, "endless stream" | "429 with a long Retry-After");
        let has_own_settings = !self.model.is_empty() || !self.settings.is_empty();
        !self.events.contains("error:") && !is_long && !has_own_settings
    }
}

const fn row(
    group: &'static str,
    name: &'static str,
    replies: Replies,
    class: &'static str,
    events: &'static str,
    end: RunEnd,
) -> MatrixRow {
    MatrixRow { group, name, replies, wires: &Wire::ALL, class, events, end, model: "", settings: "" }
}

/// Returns all rows.
pub fn matrix() -> Vec<MatrixRow> {
    [shape::ROWS, calls::ROWS, ends::ROWS, trouble::ROWS, sizes::ROWS, loops::ROWS].concat()
}
