//! `wharf run`: sends one message to the agent and prints its answer.

pub(super) mod approval;
pub(super) mod consent;
pub(super) mod kept;
mod message;
pub(super) mod model;
pub(super) mod renderer;

use super::{attachment::AttachedWord, recording::Recording, replay::conversation::recorded_approver};
use crate::{
    agent_activity::unreachable_event,
    app::{App, Connections},
    cli::{AgentArgs, RunArgs},
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    message_context::UserMessage,
    output::Output,
    signals::Signals,
    terminal::{self, Terminal},
    unmatched_rules::{unmatched_rules, unmatched_warning},
};
use approval::TerminalApprover;
use consent::AgentConsent;
use kept::KeptConversation;
use renderer::{Renderer, RunFormat};
use std::{future, sync::Arc, time::Duration};
use tokio::sync::oneshot;
use wharf_agent::{
    Agent, AgentEvent, Approver, InputAnswerer, RunRequest, RunRules, RunSignals, client::ModelClient,
    message::Content,
};
use wharf_config::{AgentSettings, Glob};
use wharf_mcp::session::List;
use wharf_runtime::cassette::ConversationNaming;

pub(super) async fn run(mut app: App, args: RunArgs, environment: Environment) -> Exit {
    let output = app.output;
    let prepared = message::read_text(&args).and_then(|message| {
        let recording = Recording::begin(&mut app, &args.cassette, ConversationNaming::Main)?;
        let client = model::client(&app, args.agent.model.as_deref(), &environment, &recording.tape())?;
        model::price(&app, &client, &settings(&app, &args.agent).limits)?;
        Ok((message, client, recording))
    });
    let (message, client, recording) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return output.fail(&error),
    };
    app.options.consent = AgentConsent::wrap(app.options.consent.clone(), &app.plan.agent.sampling);
    let mut signals = Signals::listen();
    let lists = lists(&args);
    let connections = tokio::select! {
        connections = app.connect(|_| true, &lists) => connections,
        signal = signals.next() => {
            let exit = output.fail(&CommandError::interrupted(signal));
            app.shut_down_promptly().await;
            return exit;
        }
    };
    recording.add_servers(&connections);
    let exit = match required_fault(&connections) {
        Some(error) => output.fail(&error),
        None => {
            warn_about_faults(&connections, output);
            match compose(message, &args, &connections, &mut signals).await {
                Ok(message) => {
                    converse(&app, &args, (message, client), &recording, &connections, &mut signals).await
                }
                Err(error) => output.fail(&error),
            }
        }
    };
    connections.close().await;
    recording.end(exit, output)
}

/// Returns the lists that the run needs of its servers.
fn lists(args: &RunArgs) -> Vec<List> {
    let mut lists = vec![List::Tools];
    if !args.prompt.is_empty() {
        lists.push(List::Prompts);
    }
    if args.attach.iter().any(|it| matches!(AttachedWord::parse(it), AttachedWord::Resource(_))) {
        lists.push(List::Resources);
    }
    lists
}

/// Completes the message, unless a signal ends the program.
async fn compose(
    text: Option<String>,
    args: &RunArgs,
    connections: &Connections,
    signals: &mut Signals,
) -> Result<UserMessage, CommandError> {
    tokio::select! {
        message = message::complete(text, args, connections) => message,
        signal = signals.next() => Err(CommandError::interrupted(signal)),
    }
}

/// Sends the message, prints what happens and returns the exit code.
async fn converse(
    app: &App,
    args: &RunArgs,
    (message, client): (UserMessage, ModelClient),
    recording: &Recording,
    connections: &Connections,
    signals: &mut Signals,
) -> Exit {
    let format = match (app.output.json, args.events) {
        (true, _) => RunFormat::Json,
        (_, true) => RunFormat::Events,
        _ => RunFormat::Text,
    };
    let mut renderer = Renderer::new(app.output, format);
    let agent = Agent {
        model: Arc::new(client),
        tools: connections.handle.clone(),
        redactor: app.redactor().clone(),
        call_log: None,
    };
    let title = title(&message.content);
    let mut request = request(app, args, message, connections);
    request.approver = recorded_approver(recording, &request.conversation_id).or(request.approver);
    // The run has a price if it needs one.
    request.price = model::price(app, &agent.model, &request.settings.limits).ok().flatten();
    let beginning = (title.as_str(), agent.model.options());
    let kept = match KeptConversation::begin(app, args, beginning, &mut request).await {
        Ok(kept) => kept,
        Err(error) => return app.output.fail(&error),
    };
    match &kept {
        Some(kept) => kept.keep_results(app, &connections.handle),
        None => app.keep_temporary_results(&connections.handle),
    }
    if kept.is_some() && format == RunFormat::Text {
        app.output.print_info(&format!("conversation {}", request.conversation_id));
    }
    let (stopped, mut signal) = oneshot::channel();
    let cancel = async {
        tokio::select! {
            exit = signals.next() => {
                // The receiver lives as long as the run.
                let _ = stopped.send(exit);
            }
            () = KeptConversation::wait_until_lost(kept.as_ref()) => {}
        }
    };
    let signals = RunSignals { cancel, drain: future::pending() };
    let mut unreachable = unreachable_events(format, connections);
    let mut on_event = |event| {
        renderer.show(&event);
        // The run has begun, so the first event is `started`.
        unreachable.drain(..).for_each(|it| renderer.show(&it));
    };
    let ended = agent.run(request, signals, &mut on_event).await;
    if let Some(kept) = kept {
        kept.close().await;
    }
    match ended {
        Ok(result) => {
            renderer.finish(&result);
            signal.try_recv().unwrap_or_else(|_| (&result.report).into())
        }
        Err(why) => {
            let complaint = format!("'response_format' is not a JSON Schema: {why} at /");
            app.output.fail(&CommandError::new("ConfigError", &complaint, Exit::Usage))
        }
    }
}

/// Returns the settings of the agent file, with the limits of the operator and the command line if they are lower.
pub(super) fn settings(app: &App, args: &AgentArgs) -> AgentSettings {
    let mut settings = app.plan.agent.clone();
    settings.limits.tighten(&app.agent_policy.limits);
    let limits = &mut settings.limits;
    limits.max_turns = args.max_turns.map_or(limits.max_turns, |it| it.min(limits.max_turns));
    limits.run_timeout =
        args.timeout.map_or(limits.run_timeout, |it| Duration::from_secs(it).min(limits.run_timeout));
    settings
}

/// Returns the approval rules of the agent file and the command line.
pub(super) fn rules(app: &App, args: &AgentArgs, connections: &Connections) -> RunRules {
    let globs = |patterns: &[String]| patterns.iter().map(Glob::new).collect();
    let rules = RunRules {
        configured: app.plan.agent.approval.clone(),
        operator: app.agent_policy.approval.clone(),
        allow: globs(&args.allow),
        deny: globs(&args.deny),
        allow_all: args.yes,
    };
    warn_about_rules(&rules, connections, app.output);
    rules
}

/// Returns the instructions of the agent file.
pub(super) fn instructions(app: &App) -> String {
    app.plan.instructions.as_ref().map_or_else(String::new, |it| it.expose().to_owned())
}

/// Returns the text of a message without its attachments.
fn title(message: &[Content]) -> String {
    message.first().map(Content::as_text).unwrap_or_default()
}

fn request(app: &App, args: &RunArgs, message: UserMessage, connections: &Connections) -> RunRequest {
    let (settings, rules) = (settings(app, &args.agent), rules(app, &args.agent, connections));
    let approver: Option<Arc<dyn Approver>> = terminal::is_available()
        .then(|| Arc::new(TerminalApprover::new(Arc::new(terminal::prompt_line))) as Arc<dyn Approver>);
    let inputs = Terminal::open().map(|it| Arc::new(it) as Arc<dyn InputAnswerer>);
    RunRequest {
        instructions: instructions(app),
        rules,
        approver,
        inputs,
        earlier: message.earlier,
        attachments: message.attachments,
        ..RunRequest::new(message.content, settings, connections.catalog.clone())
    }
}

/// Returns the error of a server that is required and could not be connected.
pub(super) fn required_fault(connections: &Connections) -> Option<CommandError> {
    let mut required = connections.sources.iter().filter(|it| it.source.required);
    required.find_map(|it| it.fault.as_deref()).map(CommandError::from)
}

/// Reports the servers that could not be connected. The model continues without their tools.
pub(super) fn warn_about_faults(connections: &Connections, output: Output) {
    for fault in connections.faults() {
        output.print_info(&format!("warning: {}", crate::content::printable(&fault.message())));
    }
}

/// Returns an event for each server that could not be connected, if events are printed.
fn unreachable_events(format: RunFormat, connections: &Connections) -> Vec<AgentEvent> {
    match format {
        RunFormat::Events => connections.faults().map(unreachable_event).collect(),
        RunFormat::Text | RunFormat::Json => Vec::new(),
    }
}

fn warn_about_rules(rules: &RunRules, connections: &Connections, output: Output) {
    for rule in unmatched_rules(rules, &connections.catalog) {
        output.print_info(&format!("warning: {}", unmatched_warning(&rule)));
    }
}
