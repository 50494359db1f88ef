//! Runs the agent against every behaviour of a provider in every dialect, and compares what each kind of client gets
//! with the row: classification, events, HTTP status, exit code, and the count of the circuit breaker.
//!
//! The run, the breaker and the mappings to a status and an exit code are those of the program. Only the delay before
//! a retry and the limits of an answer are smaller.

mod event_words;

use super::status_of;
use crate::{exit::Exit, todo::builtin::BuiltinServers};
use event_words::event_words;
use scripted_model::{MatrixRow, ScriptedModel, Wire, matrix};
use std::{
    collections::BTreeSet,
    future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tokio::runtime::Builder;
use wharf_agent::{
    Agent, AgentEvent, RunReport, RunRequest, RunSignals,
    answer::{Answer, CallIds},
    client::{ModelClient, ModelEvent},
    message::{Content, Message},
    model::{
        AnswerLimits,
        trouble::{ProviderErrorKind, Trouble},
    },
    tool_list::ToolList,
    view::{ToolChoice, View},
};
use wharf_config::{Env, Plan};
use wharf_runtime::{Catalog, Handle, Redactor, Runtime, RuntimeOptions, UpstreamContext};
use wharf_store::Location;

/// Number of rows at a time. Many of them wait.
const WORKERS: usize = 8;
/// Address without a server.
const NOWHERE: &str = "http://127.0.0.1:1/";

/// Returns the agent file for a provider at this address.
fn agent_file(row: &MatrixRow, wire: Wire, url: &str) -> String {
    let (provider, api) = match wire {
        Wire::Responses => ("openai", "  api: responses\n"),
        Wire::Chat => ("openai", ""),
        Wire::Anthropic => ("anthropic", ""),
        Wire::Gemini => ("gemini", ""),
        Wire::Ollama => ("ollama", ""),
    };
    let (model, settings) = (row.model, row.settings);
    format!(
        "model:\n  provider: {provider}\n  name: m\n  endpoint: {url}\n{api}{model}{settings}\
         tools:\n  - {{name: todo, description: d, type: mcp, server: 'builtin:todo'}}\n"
    )
}

/// Returns the plan, and the provider if something listens.
fn plan(row: &MatrixRow, wire: Wire) -> (Plan, Option<ScriptedModel>) {
    let replies = (row.replies)(wire);
    let model = (!replies.is_empty()).then(|| ScriptedModel::start(replies));
    let url = model.as_ref().map_or_else(|| NOWHERE.to_owned(), ScriptedModel::url);
    let (plan, diagnostics) = wharf_config::load(agent_file(row, wire, &url), &Env::bare());
    (plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false))), model)
}

fn client(plan: &Plan) -> ModelClient {
    let model = plan.model.as_ref().expect("a model");
    let client = ModelClient::new(model, Some("k"), None, Arc::new(Redactor::of(plan))).expect("a client");
    let limits = AnswerLimits { event_bytes: 4 << 20, stream_bytes: 8 << 20, ..AnswerLimits::default() };
    client.with_first_delay(Duration::from_millis(1)).with_limits(limits)
}

/// Asks once, and returns the classification of the first reply.
async fn classify(row: &MatrixRow, wire: Wire) -> String {
    let (plan, _model) = plan(row, wire);
    let messages = [Message::User(vec![Content::Text("Hi".into())])];
    let tools = ToolList::default();
    let view = View {
        conversation_id: "c",
        instructions: "",
        tools: &tools,
        tool_choice: ToolChoice::Auto,
        messages: &messages,
    };
    let mut first = None;
    let mut on_event = |event: ModelEvent| {
        if let ModelEvent::Retry { trouble, .. } = event {
            first.get_or_insert(trouble);
        }
    };
    let answer = client(&plan).ask(&view, &mut CallIds::new("r"), &mut on_event).await;
    match first.map_or(answer, Err) {
        Ok(answer) => answer_class(&answer),
        Err(trouble) => trouble_class(&trouble),
    }
}

fn answer_class(answer: &Answer) -> String {
    match answer.calls().count() {
        0 => format!("{:?}", answer.finish),
        calls => format!("{calls} calls"),
    }
}

/// Returns the name of an error without its details.
fn trouble_class(trouble: &Trouble) -> String {
    let name = match trouble {
        Trouble::Provider(error) => match &error.kind {
            ProviderErrorKind::TooLong { .. } => "TooLong".to_owned(),
            kind => format!("{kind:?}"),
        },
        trouble => format!("{trouble:?}"),
    };
    name.split([' ', '(']).next().unwrap_or_default().to_owned()
}

/// Tools of all runs of one thread.
struct Tools {
    runtime: Runtime,
    handle: Handle,
    catalog: Arc<Catalog>,
    _folder: TempDir,
}

impl Tools {
    async fn start() -> Tools {
        let folder = TempDir::new().expect("a folder");
        let (plan, _) = wharf_config::load(agent_file(&matrix()[0], Wire::Chat, NOWHERE), &Env::bare());
        let database = Location::Sqlite(folder.path().join("todo.db"));
        let plain = UpstreamContext::plain(folder.path().join("scratch")).expect("a context");
        let context =
            UpstreamContext { builtins: Some(Arc::new(BuiltinServers::new(Some(database)))), ..plain };
        let runtime = Runtime::start(&plan.expect("a plan"), &context, RuntimeOptions::default());
        let handle = runtime.handle();
        let catalog = handle.settled().await;
        Tools { runtime, handle, catalog, _folder: folder }
    }
}

/// Runs the agent once, and returns the events, the report and the failures that the breaker counted.
async fn run(tools: &Tools, row: &MatrixRow, wire: Wire) -> (Vec<AgentEvent>, RunReport, u32) {
    let (plan, _model) = plan(row, wire);
    let (redactor, model) = (Arc::new(Redactor::of(&plan)), Arc::new(client(&plan)));
    let agent = Agent { model, tools: tools.handle.clone(), redactor, call_log: None };
    let request = RunRequest::new(vec![Content::Text("Hi".into())], plan.agent, tools.catalog.clone());
    let signals = RunSignals { cancel: future::pending(), drain: future::pending() };
    let mut events = Vec::new();
    let result = agent.run(request, signals, &mut |event| events.push(event)).await.expect("valid settings");
    (events, result.report, agent.model.breaker().snapshot().failures)
}

/// Returns the difference between a row and what happens, if there is any.
async fn difference(tools: &Tools, row: &MatrixRow, wire: Wire) -> Option<String> {
    let class = if row.class.is_empty() { String::new() } else { classify(row, wire).await };
    let (events, report, failures) = run(tools, row, wire).await;
    let error_type = report.error.as_ref().map_or("", |it| it.error_type());
    let (status, exit) = (status_of(&report).as_u16(), Exit::from(&report).code());
    let found = format!(
        "{class} | {} | {status} {exit} {} {error_type} {failures}",
        event_words(&events),
        report.status().as_str()
    );
    let end = &row.end;
    let counted = u8::from(end.is_counted);
    let expected = format!(
        "{} | {} | {} {} {} {} {counted}",
        row.class, row.events, end.http, end.exit, end.status, end.error_type
    );
    let name = format!("{}: {} in {wire:?}", row.group, row.name);
    (found != expected).then(|| format!("{name}\n  found    {found}\n  expected {expected}"))
}

#[test]
fn every_behaviour_ends_as_its_row_says_in_every_dialect() {
    let cases: Vec<(MatrixRow, Wire)> =
        matrix().into_iter().flat_map(|row| row.wires.iter().map(move |wire| (row, *wire))).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = async || {
        let tools = Tools::start().await;
        while let Some((row, wire)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let difference = difference(&tools, row, *wire).await;
            wrong.lock().unwrap_or_else(PoisonError::into_inner).extend(difference);
        }
        tools.runtime.shutdown(Duration::ZERO).await;
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work())
            });
        }
    });
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_row_has_a_name_of_its_own() {
    let rows = matrix();
    let names: BTreeSet<_> = rows.iter().map(|it| (it.group, it.name)).collect();
    assert_eq!(names.len(), rows.len());
}
