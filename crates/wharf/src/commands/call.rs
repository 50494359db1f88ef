//! `wharf call`: calls one tool once, through the gateway that runs in the same state folder or by starting the
//! server.

mod through_gateway;

use super::{gateway_client::GatewayClient, list::fault_text, recording::Recording, tasks::print_created};
use crate::{
    app::{App, ConnectedSource, Connections},
    arguments::{Parameters, TypedArguments},
    cli::CallArgs,
    command_error::CommandError,
    content::{self, printable},
    exit::Exit,
    output::Output,
    progress::{Progress, ProgressLine},
};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use wharf_config::{Endpoint, Source};
use wharf_mcp::{
    Raw,
    model::CallResult,
    session::{List, MetaKey, TaskMode},
    tasks,
};
use wharf_runtime::{Call, CallRecord, Caller, cassette::ConversationNaming, catalog::ToolEntry, views};

pub(super) async fn run(mut app: App, args: CallArgs, gateway: Option<GatewayClient>) -> Exit {
    let output = app.output;
    let recording = match Recording::begin(&mut app, &args.cassette, ConversationNaming::Main) {
        Ok(recording) => recording,
        Err(error) => return output.fail(&error),
    };
    let (typed, timeout) = match read(&args) {
        Ok(read) => read,
        Err(error) => return output.fail(&error),
    };
    if let Some(gateway) = gateway
        && let Some(exit) = through_gateway::call(&gateway, &typed, timeout, &args, output).await
    {
        return exit;
    }
    let connections =
        app.connect(|it| can_have_tool(it, &args.tool, &app.plan.sources), &[List::Tools]).await;
    recording.add_servers(&connections);
    let exit = call(&connections, &typed, timeout, &args, output).await;
    connections.close().await;
    recording.end(exit, output)
}

fn read(args: &CallArgs) -> Result<(TypedArguments, Option<Duration>), CommandError> {
    let typed = TypedArguments::read(args.args.as_deref(), &args.arguments)?;
    Ok((typed, timeout(args).map_err(|it| CommandError::usage(&it))?))
}

async fn call(
    connections: &Connections,
    typed: &TypedArguments,
    timeout: Option<Duration>,
    args: &CallArgs,
    output: Output,
) -> Exit {
    let tool = connections.catalog.tool(&args.tool);
    // A source that failed to start may have the tool. It has just been tried, so report its failure.
    let may_be_elsewhere = tool.is_none() && !connections.catalog.is_misspelt(&args.tool);
    if let Some(fault) = connections.faults().next().filter(|_| may_be_elsewhere) {
        return output.fail(&fault.into());
    }
    let arguments = match typed.to_object(&args.tool, &parameters(tool.map(|it| &**it))) {
        Ok(arguments) => arguments,
        Err(errors) => return output.fail(&errors.into()),
    };
    let mut call = Call { timeout, ..Call::new(&args.tool).arguments(arguments) };
    if args.no_wait {
        call.caller = match tool.map(|it| task_caller(connections, it)).transpose() {
            Ok(caller) => caller,
            Err(error) => return output.fail(&error),
        };
    }
    let progress = Progress::new(output);
    let waiting = tool.map(|it| progress.line(&it.source, &format!("runs {}", printable(&it.wire_name))));
    call.on_progress = waiting.as_ref().and_then(ProgressLine::reporter);
    let record = connections.handle.call(call).await;
    drop(waiting);
    match (record.result(), record.source.as_deref()) {
        (Some(result), Some(source)) if args.no_wait && tasks::is_task(&result) => {
            print_created(&result, source, output)
        }
        _ => print_record(&record, args, output),
    }
}

/// Returns a caller that handles tasks itself. The task of a server that this command starts would end with it.
fn task_caller(connections: &Connections, tool: &ToolEntry) -> Result<Caller, CommandError> {
    let is_process = |it: &ConnectedSource| matches!(it.source.endpoint, Endpoint::Stdio(_));
    if connections.sources.iter().any(|it| it.is_named(&tool.source) && is_process(it)) {
        let source = &tool.source;
        let complaint = format!(
            "`{source}` runs as a process of this command, and its tasks end with it\nhelp: leave out --no-wait"
        );
        return Err(CommandError::usage(&complaint));
    }
    let meta = json!({ MetaKey::CAPABILITIES: tasks::declare(&Raw::empty_object()) });
    Ok(Caller { meta: Some(meta.into()), tasks: TaskMode::Return, ..Caller::default() })
}

/// Returns the parameters of a tool. They are unknown if the tool is missing or quarantined.
fn parameters(tool: Option<&ToolEntry>) -> Parameters {
    let schema = tool.and_then(|it| it.tool.as_ref()).map(|it| it.input_schema.decode_or_default::<Value>());
    let aliases = tool.map(|it| it.aliases().clone());
    Parameters::of(&schema.unwrap_or_default(), aliases.unwrap_or_default())
}

fn print_record(record: &CallRecord, args: &CallArgs, output: Output) -> Exit {
    if output.json {
        output.raw_json(&views::tool_result(record));
    } else if let Some(result) = record.result() {
        print_result(&result, args.save.as_deref(), output);
    } else {
        record.fault().into_iter().for_each(|it| output.print_error(&fault_text(it)));
    }
    (&record.outcome).into()
}

/// Prints a tool's result as text.
pub(super) fn print_result(result: &Raw, save: Option<&Path>, output: Output) {
    let result = CallResult::read(result);
    let text = content::to_text(&result.content, save, output.is_for_terminal());
    match (text.is_empty(), &result.structured) {
        (true, Some(structured)) => {
            output.data(&format!("{}\n", content::format_text(structured.as_str(), true)))
        }
        _ if result.is_error => output.print_error(&format!("error: the tool returned an error:\n{text}")),
        _ => output.data(&text),
    }
}

fn timeout(args: &CallArgs) -> Result<Option<Duration>, String> {
    let Some(seconds) = args.timeout else { return Ok(None) };
    let fits = Duration::try_from_secs_f64(seconds).ok().filter(|it| !it.is_zero() && it.as_secs() <= 86_400);
    fits.map(Some).ok_or_else(|| "--timeout must be a number of seconds above 0, at most 86400".to_owned())
}

/// Checks whether a source can have the tool. The name selects a source by `source:tool` or by a source's prefix. If
/// it does neither, every source can have the tool.
pub(super) fn can_have_tool(source: &Source, tool: &str, all: &[Source]) -> bool {
    let named =
        |source: &Source| tool.strip_prefix(source.name.expose()).is_some_and(|rest| rest.starts_with(':'));
    if all.iter().any(named) {
        return named(source);
    }
    let prefixed = |source: &Source| {
        let prefix = source.prefix.expose();
        !prefix.is_empty() && tool.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("__"))
    };
    if all.iter().any(prefixed) { prefixed(source) } else { true }
}
