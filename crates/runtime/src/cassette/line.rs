//! One line of a recording.

use super::{MAIN_CONVERSATION, RecordedStep, StepKind, canonical, step::read_number};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, fmt};

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CassetteError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Reason.
    pub why: String,
}

impl fmt::Display for CassetteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for CassetteError {}

/// One line of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum CassetteLine {
    /// The first line.
    Header {
        /// Version of the format.
        version: u64,
        /// Pointers that matching ignores.
        ignore: BTreeMap<String, Vec<String>>,
    },
    /// A server and what it offers.
    Server(RecordedServer),
    /// A call.
    Call(RecordedCall),
    /// Another step of a conversation.
    Step(RecordedStep),
    /// A kind that a newer version knows.
    Other,
}

/// A server and what it offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedServer {
    /// Name of the source.
    pub name: String,
    /// The server's description of itself: `name`, `version`, `era`, `protocol`.
    pub server: Value,
    /// Definitions of its tools.
    pub tools: Vec<Value>,
    /// Definitions of its prompts.
    pub prompts: Vec<Value>,
    /// Its resources.
    pub resources: Vec<Value>,
    /// Its resource templates.
    pub templates: Vec<Value>,
}

/// A call and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// Conversation that the call belongs to.
    pub conversation: String,
    /// Number of the call in its conversation, by its start.
    pub n: u64,
    /// Name of the source.
    pub source: String,
    /// Name of the tool on the wire.
    pub tool: String,
    /// Arguments as sent to the server.
    pub arguments: Value,
    /// Outcome.
    pub outcome: RecordedOutcome,
    /// Requests of the server during the call: `method`, `params`, and `answer` or `error`.
    pub asked: Vec<Value>,
    /// Duration in milliseconds, if it was recorded. It is never compared.
    pub took_ms: Option<u64>,
    /// Number of its line, from 1; 0 for a call that was not read from a file.
    pub line: usize,
}

/// Outcome of a recorded call.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedOutcome {
    /// The server's result, which may be a tool error.
    Result(Value),
    /// A failure: `type`, `message`, and `rpc` if the server returned a JSON-RPC error.
    Fault(Value),
}

impl RecordedCall {
    /// Returns what calls are sorted by. `main` comes first, and `c2` before `c10`.
    pub(super) fn key(&self) -> (bool, usize, &str, u64) {
        let name = self.conversation.as_str();
        (name != MAIN_CONVERSATION, name.len(), name, self.n)
    }
}

impl CassetteLine {
    /// Reads a line.
    pub fn parse(text: &str, line: usize) -> Result<CassetteLine, CassetteError> {
        let error = |why: &str| CassetteError { line, why: why.to_owned() };
        let value: Value = serde_json::from_str(text).map_err(|_| error("it is not JSON"))?;
        let members = value.as_object().filter(|it| it.len() == 1);
        let members = members.ok_or_else(|| error("it is not an object with one key"))?;
        let Some((kind, body)) = members.iter().next() else { return Ok(CassetteLine::Other) };
        let Some(body) = body.as_object() else { return Err(error("its value is not an object")) };
        match kind.as_str() {
            "cassette" => header(body).ok_or_else(|| error("its header is invalid")),
            "server" => server(body).map(CassetteLine::Server).ok_or_else(|| error("its server is invalid")),
            "call" => call(body).map(CassetteLine::Call).ok_or_else(|| error("its call is invalid")),
            key => match StepKind::parse(key).map(|kind| RecordedStep::parse(kind, body)) {
                None => Ok(CassetteLine::Other),
                Some(step) => {
                    step.map(CassetteLine::Step).ok_or_else(|| error(&format!("its {key} is invalid")))
                }
            },
        }
    }

    /// Returns the line with its line break.
    pub fn to_text(&self) -> String {
        let value = match self {
            CassetteLine::Header { version, ignore } => {
                json!({ "cassette": { "version": version, "ignore": ignore } })
            }
            CassetteLine::Server(server) => server_json(server),
            CassetteLine::Call(call) => call_json(call),
            CassetteLine::Step(step) => step.to_json(),
            CassetteLine::Other => return String::new(),
        };
        canonical(&value) + "\n"
    }
}

fn server_json(server: &RecordedServer) -> Value {
    let RecordedServer { name, server, tools, prompts, resources, templates } = server;
    let mut body = json!({ "name": name, "server": server, "tools": tools, "prompts": prompts });
    for (key, items) in [("resources", resources), ("templates", templates)] {
        if !items.is_empty() {
            body[key] = json!(items);
        }
    }
    json!({ "server": body })
}

fn call_json(call: &RecordedCall) -> Value {
    let RecordedCall { conversation, n, source, tool, arguments, outcome, asked, took_ms, line: _ } = call;
    let mut body = json!({
        "conversation": conversation, "n": n, "source": source, "tool": tool, "arguments": arguments,
    });
    match outcome {
        RecordedOutcome::Result(result) => body["result"] = result.clone(),
        RecordedOutcome::Fault(fault) => body["fault"] = fault.clone(),
    }
    if !asked.is_empty() {
        body["asked"] = json!(asked);
    }
    if let Some(took_ms) = took_ms {
        body["took_ms"] = json!(took_ms);
    }
    json!({ "call": body })
}

fn header(body: &Map<String, Value>) -> Option<CassetteLine> {
    let ignore = match body.get("ignore") {
        None => BTreeMap::new(),
        Some(ignore) => serde_json::from_value(ignore.clone()).ok()?,
    };
    Some(CassetteLine::Header { version: body.get("version")?.as_u64()?, ignore })
}

fn server(body: &Map<String, Value>) -> Option<RecordedServer> {
    let list = |key: &str| body.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    Some(RecordedServer {
        name: body.get("name")?.as_str()?.to_owned(),
        server: body.get("server").cloned().unwrap_or_default(),
        tools: list("tools"),
        prompts: list("prompts"),
        resources: list("resources"),
        templates: list("templates"),
    })
}

fn call(body: &Map<String, Value>) -> Option<RecordedCall> {
    let text = |key: &str| body.get(key)?.as_str().map(str::to_owned);
    let outcome = match (body.get("result"), body.get("fault")) {
        (Some(result), None) => RecordedOutcome::Result(result.clone()),
        (None, Some(fault)) if fault["type"].is_string() && fault["message"].is_string() => {
            RecordedOutcome::Fault(fault.clone())
        }
        _ => return None,
    };
    Some(RecordedCall {
        conversation: text("conversation")?,
        n: read_number(body)?,
        source: text("source")?,
        tool: text("tool")?,
        arguments: body.get("arguments").cloned().unwrap_or_else(|| json!({})),
        outcome,
        asked: body.get("asked").and_then(Value::as_array).cloned().unwrap_or_default(),
        took_ms: body.get("took_ms").and_then(Value::as_u64).filter(|it| *it < 1 << 53),
        line: 0,
    })
}
