//! `wharf call`: one tool, once.

use super::list::{fault_json, fault_text, offers};
use crate::{
    arguments,
    cli::CallArgs,
    content,
    dock::{Dock, Docked, hang_up},
    exit::Exit,
    output::Output,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;
use wharf_mcp::{Phase, Raw, Request, Sent, model::CallResult, session::List};
use wharf_runtime::{
    Fault, FaultKind,
    catalog::{self, ToolEntry},
    config::Source,
};

/// What is known about a call, whatever came of it.
struct Record {
    request_id: String,
    tool: ToolEntry,
    took: Duration,
}

pub(super) async fn run(dock: Dock, args: CallArgs) -> Exit {
    let output = dock.output;
    let arguments = match arguments::object(args.args.as_deref(), &args.arguments)
        .and_then(|it| Ok((it, timeout(&args)?)))
    {
        Ok((arguments, timeout)) => (Raw::from(Value::Object(arguments)), timeout),
        Err(complaint) => {
            output.complain(&format!("error: {complaint}\n"));
            return Exit::Usage;
        }
    };
    let docked = dock.connect(|it| may_have(it, &args.tool, dock.sources()), &[List::Tools]).await;
    let entries = catalog::tools(offers(&docked));
    let exit = match find(&entries, &args.tool, &docked) {
        Ok(entry) => call(entry.clone(), arguments, &args, &docked, output).await,
        Err(exit) => {
            complain_unknown(&args.tool, &entries, &docked, exit, output);
            exit
        }
    };
    hang_up(docked).await;
    exit
}

async fn call(
    tool: ToolEntry,
    arguments: (Raw, Option<Duration>),
    args: &CallArgs,
    docked: &[Docked],
    output: Output,
) -> Exit {
    let (arguments, timeout) = arguments;
    let Some((upstream, live)) = docked.iter().find_map(|it| {
        let (live, _) = it.state.as_ref().ok()?;
        (it.upstream.source().name.shown() == tool.source).then_some((&it.upstream, live))
    }) else {
        return Exit::NotFound;
    };
    let headers = tool.tool.as_ref().map(|it| it.header_params(Some(&arguments))).unwrap_or_default();
    let timeout = timeout.unwrap_or(upstream.source().timeouts.request);
    let request = Request::call_tool(&tool.wire_name, Some(&arguments))
        .header_params(headers)
        .by(Instant::now() + timeout);
    let started = Instant::now();
    let answer = live.session.request(request).await;
    let record = Record { request_id: Uuid::now_v7().to_string(), tool, took: started.elapsed() };
    match answer {
        Ok(raw) => say_answer(&CallResult::read(&raw), &record, args, output),
        Err(failure) => {
            let fault = upstream.fault(&failure);
            if output.json {
                output.json(&report(false, json!([]), error_json(&fault), &record, None));
            } else {
                output.complain(&fault_text(&fault));
            }
            fault.kind.into()
        }
    }
}

fn say_answer(result: &CallResult, record: &Record, args: &CallArgs, output: Output) -> Exit {
    let structured = result.structured.as_ref().map(content::value);
    if output.json {
        let error = if result.is_error { tool_error(result) } else { Value::Null };
        output.json(&report(!result.is_error, content::to_json(&result.content), error, record, structured));
    } else {
        let text = content::to_text(&result.content, args.save.as_deref());
        match (text.is_empty(), structured) {
            (true, Some(structured)) => output.data(&format!("{structured:#}\n")),
            _ if result.is_error => {
                output.complain(&format!("error: the tool answered with an error:\n{text}"))
            }
            _ => output.data(&text),
        }
    }
    if result.is_error { Exit::ToolError } else { Exit::Fine }
}

fn report(success: bool, content: Value, error: Value, record: &Record, structured: Option<Value>) -> Value {
    json!({
        "success": success,
        "content": content,
        "error": error,
        "metadata": {
            "request_id": record.request_id,
            "tool": record.tool.name,
            "wire_name": record.tool.wire_name,
            "source": record.tool.source,
            "duration_ms": record.took.as_secs_f64() * 1000.0,
            "structured_content": structured,
        },
    })
}

/// A tool's own error, in its own words.
fn tool_error(result: &CallResult) -> Value {
    let message = content::to_text(&result.content, None);
    json!({ "type": "ToolError", "message": message.trim_end(), "hint": null, "phase": "call", "sent": "yes" })
}

fn error_json(fault: &Fault) -> Value {
    let mut error = fault_json(fault);
    error["phase"] = json!(match fault.phase {
        Phase::Open => "open",
        Phase::Handshake => "handshake",
        Phase::Listing => "listing",
        Phase::Request => "call",
    });
    error["sent"] = json!(match fault.sent {
        Sent::No => "no",
        Sent::Unknown => "unknown",
        Sent::Yes => "yes",
    });
    error
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

/// The tool by its shown name, by `source:tool`, or by a bare name that only one source has.
fn find<'a>(entries: &'a [ToolEntry], wanted: &str, docked: &[Docked]) -> Result<&'a ToolEntry, Exit> {
    let exact = entries.iter().find(|it| it.name == wanted);
    let named = || {
        entries.iter().find(|it| {
            wanted.strip_prefix(it.source.as_str()).and_then(|it| it.strip_prefix(':')) == Some(&it.wire_name)
        })
    };
    let found = exact.or_else(named).map_or_else(
        || {
            let bare: Vec<&ToolEntry> = entries.iter().filter(|it| it.wire_name == wanted).collect();
            if let [only] = bare[..] { Some(only) } else { None }
        },
        Some,
    );
    match found {
        Some(entry) if entry.quarantined.is_none() => Ok(entry),
        Some(_) => Err(Exit::NotFound),
        // A server that did not answer may well have it.
        None => Err(docked
            .iter()
            .find_map(|it| it.state.as_ref().err())
            .map_or(Exit::NotFound, |fault| fault.kind.into())),
    }
}

fn complain_unknown(wanted: &str, entries: &[ToolEntry], docked: &[Docked], exit: Exit, output: Output) {
    let fault = docked.iter().find_map(|it| it.state.as_ref().err()).filter(|_| exit != Exit::NotFound);
    if let Some(fault) = fault {
        if output.json {
            return output.json(&json!({ "success": false, "content": [], "error": error_json(fault), "metadata": { "tool": wanted } }));
        }
        return output.complain(&fault_text(fault));
    }
    let same: Vec<&ToolEntry> = entries.iter().filter(|it| it.wire_name == wanted).collect();
    let (message, hint) =
        match (&same[..], entries.iter().find(|it| it.name == wanted || it.wire_name == wanted)) {
            ([], None) => {
                (format!("there is no tool '{wanted}'"), "`wharf tools` lists what there is".to_owned())
            }
            (_, Some(ToolEntry { quarantined: Some(why), .. })) => {
                (format!("the tool '{wanted}' is quarantined: {why}"), "its server must mend it".to_owned())
            }
            (same, _) => {
                let names: Vec<&str> = same.iter().map(|it| it.name.as_str()).collect();
                (
                    format!("several servers have a tool '{wanted}'"),
                    format!("say which: {}", names.join(", ")),
                )
            }
        };
    let kind = FaultKind::ToolNotFound.as_str();
    if output.json {
        let error =
            json!({ "type": kind, "message": message, "hint": hint, "phase": "resolve", "sent": "no" });
        output.json(
            &json!({ "success": false, "content": [], "error": error, "metadata": { "tool": wanted } }),
        );
    } else {
        output.complain(&format!("error: {kind}: {message}\nhelp: {hint}\n"));
    }
}
