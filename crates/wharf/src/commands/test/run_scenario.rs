//! Runs one scenario: answers from its recording, or records it again.

use crate::{
    app::{App, Connections, run_quietly},
    cli::{CassetteArgs, GlobalOptions},
    command_error::CommandError,
    commands::{
        call::can_have_tool,
        recording::Recording,
        replay::conversation::{ReplayRules, replaying_agent},
    },
    environment::Environment,
    exit::Exit,
    output::Output,
    scenario::{MadeCall, ScenarioEvents, ScenarioFile, ScenarioResult, ScenarioVerdict, check},
};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    future,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    time::Instant,
};
use wharf_agent::{RunError, RunRequest, RunSignals, message::Content, model::trouble::Trouble};
use wharf_config::{FaultRules, Scenario, ScenarioCall, ScenarioTask, Source};
use wharf_mcp::{
    Raw,
    model::{Block, CallResult, Item},
    session::List,
};
use wharf_runtime::{
    Call, CallRecord,
    cassette::{ConversationNaming, StepKind},
    upstream::FaultInjection,
};

/// Events of a scenario, failures apart from the expectations, and notes.
type Ran = Result<(ScenarioEvents, Vec<String>, Vec<String>), String>;

/// Runs a scenario and judges it.
pub(super) fn run_scenario(
    common: &GlobalOptions,
    file: &ScenarioFile,
    update: bool,
    environment: &Environment,
) -> ScenarioResult {
    let started = Instant::now();
    let (verdict, notes) = match &file.scenario {
        Err(why) => (ScenarioVerdict::Unusable(why.clone()), Vec::new()),
        Ok(scenario) => match run_in_app(common, file, scenario, update, environment) {
            Err(why) => (ScenarioVerdict::Unusable(why), Vec::new()),
            Ok((events, mut failures, notes)) => {
                failures.extend(check(&scenario.expect, &events));
                let passed = failures.is_empty();
                let verdict =
                    if passed { ScenarioVerdict::Passed } else { ScenarioVerdict::Failed(failures) };
                (verdict, notes)
            }
        },
    };
    let (name, path) = (file.name(), file.path.clone());
    ScenarioResult { name, path, verdict, notes, took: started.elapsed() }
}

/// Loads the agent file and runs the scenario with its servers.
fn run_in_app(
    common: &GlobalOptions,
    file: &ScenarioFile,
    scenario: &Scenario,
    update: bool,
    environment: &Environment,
) -> Ran {
    let agent = agent_file(file, scenario, &environment.folder)?;
    let common = GlobalOptions { file: agent, quiet: true, json: false, ..common.clone() };
    let environment = environment.for_replay(!update);
    let cassette = environment.folder.join(file.folder()).join(&scenario.cassette);
    if !update && !cassette.exists() {
        return Err(format!(
            "there is no recording {}; `wharf test --update` makes it",
            scenario.cassette.display()
        ));
    }
    let args = match update {
        true => CassetteArgs { record: Some(cassette), ..CassetteArgs::default() },
        false => CassetteArgs { replay: Some(cassette), ..CassetteArgs::default() },
    };
    let (ran, task, followed) = (Rc::new(RefCell::new(None)), scenario.task.clone(), environment.clone());
    let faults = scenario.faults.clone();
    let result = ran.clone();
    run_quietly(&common, &environment, move |mut app| {
        Box::pin(async move {
            if !faults.is_empty() {
                let rules = FaultRules { seed: 0, rules: faults };
                app.upstream_context.faults = Some(Arc::new(FaultInjection::new(rules)));
            }
            let ended = run(app, &task, &args, &followed).await;
            result.replace(Some(ended.map_err(|it| it.to_text().trim_end().to_owned())));
            Exit::Success
        })
    })?;
    ran.take().unwrap_or_else(|| Err("the scenario was interrupted".to_owned()))
}

/// Returns the agent file: the one that the scenario names, or the next agent.yaml beside or above it.
fn agent_file(file: &ScenarioFile, scenario: &Scenario, folder: &Path) -> Result<PathBuf, String> {
    let own = folder.join(file.folder());
    if let Some(agent) = &scenario.agent {
        return Ok(own.join(agent));
    }
    let own = own.canonicalize().unwrap_or(own);
    let candidates = own.ancestors().map(|it| it.join("agent.yaml"));
    let found = candidates.into_iter().find(|it| it.exists());
    found.ok_or_else(|| {
        "there is no agent.yaml beside or above the scenario; name it with `agent:`".to_owned()
    })
}

async fn run(
    mut app: App,
    task: &ScenarioTask,
    args: &CassetteArgs,
    environment: &Environment,
) -> Result<(ScenarioEvents, Vec<String>, Vec<String>), CommandError> {
    let recording = Recording::begin(&mut app, args, ConversationNaming::Main)?;
    let connections =
        app.connect(|it| is_needed(it, task, &recording, &app.plan.sources), &[List::Tools]).await;
    let mut failures: Vec<String> = connections.faults().map(|it| it.to_string()).collect();
    recording.add_servers(&connections);
    app.keep_temporary_results(&connections.handle);
    let ended = match task {
        ScenarioTask::Calls(calls) => Ok(make_calls(calls, &connections, &mut failures).await),
        ScenarioTask::Message(message) => {
            send_message(&app, message, &recording, &connections, environment, &mut failures).await
        }
    };
    connections.close().await;
    let notes = unused_lines(&recording);
    let exit = recording.end(Exit::Success, Output { quiet: true, ..app.output });
    if exit != Exit::Success {
        return Err(CommandError::new("MCPError", "the recording cannot be written", exit));
    }
    Ok((ended?, failures, notes))
}

/// Checks whether a scenario needs a server: one that is recorded, or one that may have a tool to call.
fn is_needed(source: &Source, task: &ScenarioTask, recording: &Recording, all: &[Source]) -> bool {
    match (recording.player(), task) {
        (Some(player), _) => player.cassette().servers.contains_key(source.name.expose()),
        (None, ScenarioTask::Message(_)) => true,
        (None, ScenarioTask::Calls(calls)) => calls.iter().any(|it| can_have_tool(source, &it.tool, all)),
    }
}

async fn make_calls(
    calls: &[ScenarioCall],
    connections: &Connections,
    failures: &mut Vec<String>,
) -> ScenarioEvents {
    let mut events = ScenarioEvents::default();
    for ScenarioCall { tool, arguments } in calls {
        let record = connections.handle.call(Call::new(tool).arguments(json!(arguments))).await;
        failures.extend(not_recorded(&record));
        events.calls.push(made_call(&record));
    }
    events.answer = events.calls.last().map(|it| it.result.clone()).unwrap_or_default();
    events
}

async fn send_message(
    app: &App,
    message: &str,
    recording: &Recording,
    connections: &Connections,
    environment: &Environment,
    failures: &mut Vec<String>,
) -> Result<ScenarioEvents, CommandError> {
    let agent = replaying_agent(app, recording, connections, environment)?;
    let input = recording.player().and_then(|it| it.cassette().steps_of(StepKind::Input).next());
    let rules = input.map(ReplayRules::of).unwrap_or_default();
    let request = RunRequest::new(
        vec![Content::Text(message.to_owned())],
        app.plan.agent.clone(),
        connections.catalog.clone(),
    );
    let request = rules.apply(app, recording, request);
    let signals = RunSignals { cancel: future::pending(), drain: future::pending() };
    let ended = agent.run(request, signals, &mut |_| ()).await;
    let result =
        ended.map_err(|why| CommandError::usage(&format!("'response_format' cannot be used: {why}")))?;
    match &result.report.error {
        None => {}
        Some(RunError::Model(Trouble::NotRecorded(why))) => {
            failures.push(format!("MCPNotRecordedError: {why}"))
        }
        Some(error) => failures.push(format!("the run failed: {error}")),
    }
    let mut records = result.calls;
    records.sort_by_key(|it| it.started);
    failures.extend(records.iter().filter_map(not_recorded));
    Ok(ScenarioEvents {
        calls: records.iter().map(|it| made_call(it)).collect(),
        answer: result.report.final_output,
        turns: result.report.turns,
        tokens: result.report.usage.tokens(),
    })
}

fn not_recorded(record: &Arc<CallRecord>) -> Option<String> {
    let fault = record.fault()?;
    (fault.kind.as_str() == "MCPNotRecordedError").then(|| fault.to_string())
}

fn made_call(record: &CallRecord) -> MadeCall {
    let (source, wire) = (record.source.as_deref(), record.wire_name.as_deref());
    let result = match (record.result(), record.fault()) {
        (Some(result), _) => result_text(&result),
        (None, Some(fault)) => fault.to_string(),
        (None, None) => String::new(),
    };
    let arguments = record.arguments.as_ref().map(|it| it.decode_or_default::<Value>());
    MadeCall {
        name: record.tool.clone(),
        id: format!("{}:{}", source.unwrap_or_default(), wire.unwrap_or_default()),
        arguments: arguments.unwrap_or_else(|| json!({})),
        result,
    }
}

/// Returns the text of a result, or its structured content if it has no text.
fn result_text(result: &Raw) -> String {
    let result = CallResult::read(result);
    let texts = result.content.iter().filter_map(|it| match it {
        Item::Valid(Block::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    match (text.is_empty(), &result.structured) {
        (true, Some(structured)) => structured.as_str().to_owned(),
        _ => text,
    }
}

fn unused_lines(recording: &Recording) -> Vec<String> {
    let lines = recording.player().map(|it| it.unplayed()).unwrap_or_default();
    let name = recording.player().map(|it| it.name().to_owned()).unwrap_or_default();
    lines.into_iter().map(|line| format!("line {line} of {name} was not used")).collect()
}
