//! `wharf run`: sends one message to the agent and prints its answer.

mod approval;
mod message;
mod model;
mod renderer;

use crate::{
    app::{App, Connections},
    cli::RunArgs,
    command_error::CommandError,
    environment::Environment,
    exit::Exit,
    output::Output,
    signals::Signals,
    terminal,
};
use approval::TerminalApprover;
use renderer::{Renderer, RunFormat};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use wharf_agent::{Agent, Approver, RunRequest, RunRules, client::ModelClient, message::Content};
use wharf_config::{AgentSettings, Glob};
use wharf_mcp::session::List;
use wharf_runtime::EgressPolicy;

pub(super) async fn run(app: App, args: RunArgs, environment: Environment) -> Exit {
    let output = app.output;
    let prepared = message::read(args.message.as_deref())
        .and_then(|message| Ok((message, model::client(&app, &args, &environment)?)));
    let (message, client) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return output.fail(&error),
    };
    let mut signals = Signals::listen();
    let connections = tokio::select! {
        connections = app.connect(|_| true, &[List::Tools]) => connections,
        signal = signals.next() => {
            let exit = output.fail(&CommandError::interrupted(signal));
            app.shut_down_promptly().await;
            return exit;
        }
    };
    let exit = match required_fault(&connections) {
        Some(error) => output.fail(&error),
        None => {
            warn_about_faults(&connections, &args, output);
            converse(&app, &args, message, client, &connections, &mut signals).await
        }
    };
    connections.close().await;
    exit
}

/// Sends the message, prints what happens and returns the exit code.
async fn converse(
    app: &App,
    args: &RunArgs,
    message: String,
    client: ModelClient,
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
    };
    let request = request(app, args, message, connections);
    let (stopped, mut signal) = oneshot::channel();
    let cancel = async {
        let exit = signals.next().await;
        // The receiver lives as long as the run.
        let _ = stopped.send(exit);
    };
    match agent.run(request, cancel, &mut |event| renderer.show(&event)).await {
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

fn request(app: &App, args: &RunArgs, message: String, connections: &Connections) -> RunRequest {
    let plan = &app.plan;
    let mut settings: AgentSettings = plan.agent.clone();
    let limits = &mut settings.limits;
    limits.max_turns = args.max_turns.map_or(limits.max_turns, |it| it.min(limits.max_turns));
    limits.run_timeout =
        args.timeout.map_or(limits.run_timeout, |it| Duration::from_secs(it).min(limits.run_timeout));
    let globs = |patterns: &[String]| patterns.iter().map(Glob::new).collect();
    let rules = RunRules {
        configured: settings.approval.clone(),
        allow: globs(&args.allow),
        deny: globs(&args.deny),
        allow_all: args.yes,
    };
    warn_about_rules(&rules, connections, app.output);
    let approver: Option<Arc<dyn Approver>> =
        terminal::is_available().then(|| Arc::new(TerminalApprover::default()) as Arc<dyn Approver>);
    RunRequest {
        message: vec![Content::Text(message)],
        instructions: plan.instructions.as_ref().map_or_else(String::new, |it| it.expose().to_owned()),
        settings,
        rules,
        approver,
        catalog: connections.catalog.clone(),
    }
}

/// Returns the error of a server that is required and could not be connected.
fn required_fault(connections: &Connections) -> Option<CommandError> {
    let mut required = connections.sources.iter().filter(|it| it.source.required);
    required.find_map(|it| it.fault.as_deref()).map(CommandError::from)
}

/// Reports the servers that could not be connected. The model continues without their tools.
fn warn_about_faults(connections: &Connections, args: &RunArgs, output: Output) {
    if args.events || output.json {
        return;
    }
    for fault in connections.faults() {
        output.print_info(&format!("warning: {}", crate::content::printable(&fault.message())));
    }
}

/// reports approval rules that match no tool.
fn warn_about_rules(rules: &RunRules, connections: &Connections, output: Output) {
    let configured = &rules.configured;
    let all = configured.allow.iter().chain(&configured.ask).chain(&configured.deny);
    for rule in all.chain(&rules.allow).chain(&rules.deny) {
        if !connections.catalog.tools.iter().any(|it| rule.matches(&it.id())) {
            output.print_info(&format!("warning: approval rule '{}' matches no tool", rule.as_str()));
        }
    }
}

/// Returns the addresses that the model's server may have: all but link-local and metadata addresses.
fn model_egress() -> EgressPolicy {
    EgressPolicy::wide()
}
