//! `wharf call`: one tool, once.

use super::list::fault_text;
use crate::{arguments, cli::CallArgs, content, dock::Dock, exit::Exit, output::Output};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_mcp::{model::CallResult, session::List};
use wharf_runtime::{Call, CallRecord, Fault, Outcome, config::Source, project};

pub(super) async fn run(dock: Dock, args: CallArgs) -> Exit {
    let output = dock.output;
    let call = match call(&args) {
        Ok(call) => call,
        Err(complaint) => {
            output.complain(&format!("error: {complaint}\n"));
            return Exit::Usage;
        }
    };
    let docked = dock.connect(|it| may_have(it, &args.tool, dock.sources()), &[List::Tools]).await;
    // A server that did not answer may well have the tool, but it has just been tried.
    let silent = docked.faults().next().filter(|_| docked.catalog.tool(&args.tool).is_none());
    let exit = match silent {
        Some(fault) => say_silent(fault, &args.tool, output),
        None => say(&*docked.handle.call(call).await, &args, output),
    };
    docked.leave().await;
    exit
}

fn say_silent(fault: &Fault, tool: &str, output: Output) -> Exit {
    if output.json {
        let (error, metadata) = (project::error(fault), json!({ "tool": tool }));
        output.json(&json!({ "success": false, "content": [], "error": error, "metadata": metadata }));
    } else {
        output.complain(&fault_text(fault));
    }
    fault.kind.into()
}

fn call(args: &CallArgs) -> Result<Call, String> {
    let arguments = arguments::object(args.args.as_deref(), &args.arguments)?;
    let call = Call::new(&args.tool).arguments(Value::Object(arguments));
    Ok(Call { timeout: timeout(args)?, ..call })
}

fn say(record: &CallRecord, args: &CallArgs, output: Output) -> Exit {
    if output.json {
        output.json(&project::tool_result(record));
    } else {
        say_to_a_person(record, args, output);
    }
    match &record.outcome {
        Outcome::Answered(_) => Exit::Fine,
        Outcome::Refused(_) => Exit::ToolError,
        Outcome::Failed(fault) => fault.kind.into(),
    }
}

fn say_to_a_person(record: &CallRecord, args: &CallArgs, output: Output) {
    let Some(result) = record.result() else {
        return record.fault().into_iter().for_each(|it| output.complain(&fault_text(it)));
    };
    let result = CallResult::read(&result);
    let text = content::to_text(&result.content, args.save.as_deref());
    match (text.is_empty(), result.structured.as_ref().map(content::value)) {
        (true, Some(structured)) => output.data(&format!("{structured:#}\n")),
        _ if result.is_error => output.complain(&format!("error: the tool answered with an error:\n{text}")),
        _ => output.data(&text),
    }
}

fn timeout(args: &CallArgs) -> Result<Option<Duration>, String> {
    let Some(seconds) = args.timeout else { return Ok(None) };
    let fits = Duration::try_from_secs_f64(seconds).ok().filter(|it| !it.is_zero() && it.as_secs() <= 86_400);
    fits.map(Some).ok_or_else(|| "--timeout must be a number of seconds above 0, at most 86400".to_owned())
}

/// Whether a source can have the tool. `source:tool` names it, and a prefix that fits only one points to it.
fn may_have(source: &Source, tool: &str, all: &[Source]) -> bool {
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
