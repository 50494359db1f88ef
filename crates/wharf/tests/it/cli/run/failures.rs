//! Failures of a model in every dialect, as rows: HTTP status, ending, events, exit code, and whether the circuit breaker
//! counts it. A row of the table is what an operator can rely on, whichever provider it is.

use super::{super::stdout, agent_file, workspace};
use crate::serve::server::Server;
use scripted_model::{Action, Finish, Reply, ScriptedModel, Step, Wire, call, render, sse, text};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use tempfile::TempDir;

/// Number of gateways and commands at a time. Most of them wait between retries.
const WORKERS: usize = 32;

/// A failure: what the model replies, and what follows.
struct FailureRow {
    name: &'static str,
    reply: fn(Wire) -> Reply,
    expected: ExpectedEnd,
}

/// HTTP status, exit code, status of the run, `error_type`, and whether the breaker counts it.
type ExpectedEnd = (u16, i32, &'static str, &'static str, bool);

const fn row(name: &'static str, reply: fn(Wire) -> Reply, expected: ExpectedEnd) -> FailureRow {
    FailureRow { name, reply, expected }
}

fn error(status: u16) -> Reply {
    Reply::error(status, &json!({ "error": { "message": "no" } })).header("retry-after-ms", "1")
}

fn error_event(wire: Wire) -> Reply {
    let error = json!({ "code": 503, "message": "x", "type": "server_error" });
    Reply::stream(match wire {
        Wire::Anthropic | Wire::Responses => sse(json!({ "type": "error", "error": error })),
        Wire::Chat | Wire::Gemini => sse(json!({ "error": error })),
        Wire::Ollama => "{\"error\":\"stopped\"}\n".to_owned(),
    })
}

fn ended(wire: Wire, finish: Finish) -> Reply {
    Reply::answer(wire, &[text("Half"), Step::End(finish), Step::Usage])
}

fn refusal(wire: Wire) -> Reply {
    if wire != Wire::Responses {
        return ended(wire, Finish::Refused);
    }
    let refused = sse(json!({ "type": "response.refusal.delta", "delta": "I cannot." }));
    Reply::stream(refused + &render(wire, &[Step::End(Finish::Stop), Step::Usage]))
}

/// The beginning of an answer.
fn begun(wire: Wire) -> String {
    render(wire, &[text("lost")])
}

fn broken(wire: Wire, bytes: &[u8]) -> Reply {
    let line: &[u8] = if wire == Wire::Ollama { b"" } else { b"data: " };
    Reply::stream([begun(wire).as_bytes(), line, bytes, b"\n\n"].concat())
}

fn too_many_calls(wire: Wire) -> Reply {
    let calls = (0..65).map(|at| call(&format!("c{at}"), "todo__list_todos", "{}"));
    let steps: Vec<Step> = calls.chain([Step::End(Finish::ToolCalls)]).collect();
    Reply::answer(wire, &steps)
}

const ROWS: [FailureRow; 22] = [
    row("400", |_| error(400), (502, 76, "failed", "model_api_error", false)),
    row("401", |_| error(401), (502, 2, "failed", "model_api_error", false)),
    row("403", |_| error(403), (502, 2, "failed", "model_api_error", false)),
    row("404", |_| error(404), (502, 2, "failed", "model_api_error", false)),
    row("408", |_| error(408), (504, 124, "failed", "timeout", true)),
    row("413", |_| error(413), (422, 1, "failed", "context_full", false)),
    row("429", |_| error(429), (429, 75, "failed", "rate_limited", false)),
    row("500", |_| error(500), (502, 76, "failed", "model_api_error", true)),
    row("529", |_| error(529), (429, 75, "failed", "rate_limited", true)),
    row(
        "a refused tool",
        |_| Reply::error(400, &json!({ "error": { "message": "tools.0: no" } })),
        (502, 69, "failed", "model_api_error", false),
    ),
    row("an error event", error_event, (502, 76, "failed", "model_api_error", true)),
    row("a clean end", |it| Reply::stream(begun(it)), (502, 76, "failed", "model_protocol_error", true)),
    row(
        "a cut",
        |it| Reply::stream(begun(it)).then(Action::Cut),
        (502, 76, "failed", "model_protocol_error", true),
    ),
    row("garbled", |it| broken(it, b"{]"), (502, 76, "failed", "model_protocol_error", true)),
    row("bad UTF-8", |it| broken(it, b"\xff"), (502, 76, "failed", "model_protocol_error", true)),
    row(
        "an empty answer",
        |it| Reply::answer(it, &[Step::End(Finish::Stop)]),
        (502, 76, "failed", "model_protocol_error", true),
    ),
    row(
        "a web page",
        |_| Reply::stream("<html>Sign in</html>\n\n"),
        (502, 76, "failed", "model_protocol_error", true),
    ),
    row("65 calls", too_many_calls, (502, 76, "failed", "model_protocol_error", true)),
    row("silence", |_| Reply::silence(), (504, 124, "failed", "timeout", true)),
    row("a filter", |it| ended(it, Finish::Filtered), (200, 1, "refused", "content_filtered", false)),
    row("a refusal", refusal, (200, 1, "refused", "content_filtered", false)),
    row("the length", |it| ended(it, Finish::Length), (200, 1, "limit", "limit_reached", false)),
];

/// Settings of the model, so that silence is short.
const SHORT_SILENCE: &str = "  timeout: 2\n";

/// Returns whether a provider can fail like this. Ollama has no words for an answer that was refused or filtered.
fn is_possible(row: &FailureRow, wire: Wire) -> bool {
    wire != Wire::Ollama || row.expected.2 != "refused"
}

/// Returns the settings of a row.
fn settings(row: &FailureRow) -> &'static str {
    if row.name == "silence" { SHORT_SILENCE } else { "" }
}

/// Returns the end over HTTP: status, status of the run, `error_type`, and the failures that the breaker counted.
fn over_http(row: &FailureRow, wire: Wire) -> String {
    let model = ScriptedModel::start(vec![(row.reply)(wire)]);
    let folder = TempDir::new().expect("a folder");
    let file = agent_file(wire, &model.url(), settings(row));
    fs::write(folder.path().join("agent.yaml"), file).expect("an agent file");
    let server = Server::start_with(folder, &[], &[("MODEL_KEY", "k")]);
    let body = json!({ "message": "Hi", "stream": false });
    let (status, done) = server.ask("POST", "/api/v1/chat", Some(&body));
    let (_, breakers) = server.ask("GET", "/api/v1/breakers", None);
    let breaker = breakers["items"].as_array().into_iter().flatten().find(|it| it["service_name"] != "todo");
    let failures = breaker.map(|it| it["failure_count"].clone()).unwrap_or_default();
    format!("{status} {} {} {failures}", done["status"], done["error"]["error_type"])
}

/// Returns the end on the command line: exit code, status of the run and `error_type`. Checks the events.
fn on_command_line(row: &FailureRow, wire: Wire) -> String {
    let model = ScriptedModel::start(vec![(row.reply)(wire)]);
    let output = workspace(wire, &model, settings(row)).wharf(&["run", "Hi", "--events"]);
    let events: Vec<Value> =
        stdout(&output).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let count = |name: &str| events.iter().filter(|it| it["event"] == name).count();
    let requests = model.requests().len();
    // A conversation of one message has nothing to leave out, so a model that finds it too long is not asked again.
    let changes = if row.name == "413" { 0 } else { count("context") };
    let has_all_retries = requests == 1 + count("error") + changes;
    let has_all_resets = count("response_delta") == count("reset") + count("usage");
    let done = events
        .last()
        .map(|it| &it["data"])
        .filter(|_| has_all_retries && has_all_resets && count("done") == 1);
    let Some(done) = done else { return format!("{requests} requests and wrong events: {events:?}") };
    let code = output.status.code().unwrap_or(-1);
    format!("{code} {} {}", done["status"], done["error"]["error_type"])
}

#[test]
fn every_failure_ends_alike_in_every_dialect() {
    let cases: Vec<(&FailureRow, Wire, bool)> = ROWS
        .iter()
        .flat_map(|row| Wire::ALL.into_iter().flat_map(move |wire| [(row, wire, true), (row, wire, false)]))
        .filter(|(row, wire, _)| is_possible(row, *wire))
        .collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((row, wire, is_http)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (http, code, status, error_type, is_failure) = row.expected;
                    let (expected, found) = match is_http {
                        true => {
                            let failures = u8::from(is_failure);
                            let expected = format!("{http} {status:?} {error_type:?} {failures}");
                            (expected, over_http(row, *wire))
                        }
                        false => (format!("{code} {status:?} {error_type:?}"), on_command_line(row, *wire)),
                    };
                    if found != expected {
                        let line = format!("{} in {wire:?}: {found}, expected {expected}", row.name);
                        wrong.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
