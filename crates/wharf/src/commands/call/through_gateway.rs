//! Sends a call to the gateway that runs in the same state folder. Its servers are already running, so this takes
//! milliseconds.
//!
//! The gateway returns the full call record, and the output is the same as that of a direct call. If the gateway
//! cannot make the call (it is shutting down, does not have the tool, or refuses our token), `wharf call` starts the
//! server.

use super::{
    super::remote::{Remote, refused},
    say_result,
};
use crate::{
    arguments::{Parameters, TypedArguments},
    cli::CallArgs,
    command_error::CommandError,
    content::printable,
    exit::Exit,
    front::CALL_RECORD,
    output::Output,
    progress::Progress,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use wharf_mcp::Raw;

/// Makes the call. `None` if the gateway did not make it.
pub(super) async fn call(
    gateway: &Remote,
    typed: &TypedArguments,
    timeout: Option<Duration>,
    args: &CallArgs,
    output: Output,
) -> Option<Exit> {
    let tool = find(gateway, &args.tool).await?;
    let aliases = serde_json::from_value(tool["aliases"].clone()).unwrap_or_default();
    let arguments = match typed.object(&args.tool, &Parameters::of(&tool["input_schema"], aliases)) {
        Ok(arguments) => arguments,
        Err(errors) => return Some(output.fail(&errors.into())),
    };
    let word = |key: &str| printable(tool[key].as_str().unwrap_or_default());
    let progress = Progress::new(output);
    let waiting = progress.line(&word("source"), &format!("runs {}", word("wire_name")));
    let path = format!("{}/call", path(tool["tool_id"].as_str()?));
    let answered = gateway.send("POST", &path, CALL_RECORD, Some(body(&arguments, timeout))).await;
    drop(waiting);
    match answered {
        Ok((StatusCode::OK, bytes)) => Some(say(bytes, args, output)),
        Ok((StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE, _)) => None,
        Ok((status, bytes)) => {
            let trouble = refused(status, &serde_json::from_slice(&bytes).unwrap_or_default());
            Some(output.fail(&CommandError::new("MCPError", &trouble.what, trouble.exit)))
        }
        Err(unanswered) if !unanswered.may_be_sent => None,
        Err(_) => Some(output.fail(&broken())),
    }
}

/// Finds the tool in the gateway. Ignores a gateway of an older version, which does not return argument aliases.
async fn find(gateway: &Remote, tool: &str) -> Option<Value> {
    let (status, bytes) = gateway.send("GET", &path(tool), "application/json", None).await.ok()?;
    let tool: Value = serde_json::from_slice(&bytes).ok().filter(|_| status == StatusCode::OK)?;
    tool.get("aliases").is_some().then_some(tool)
}

fn path(tool: &str) -> String {
    format!("/api/v1/tools/{}", utf8_percent_encode(tool, NON_ALPHANUMERIC))
}

/// Builds the request body. Embeds the arguments as raw JSON, so that numbers keep every digit.
fn body(arguments: &Raw, timeout: Option<Duration>) -> String {
    let timeout = timeout.map_or_else(String::new, |it| format!(",\"timeout\":{}", it.as_secs_f64()));
    format!("{{\"arguments\":{}{timeout}}}", arguments.as_str())
}

/// Prints the same output as a direct call.
fn say(bytes: Vec<u8>, args: &CallArgs, output: Output) -> Exit {
    let Ok(record) = Raw::parse(bytes) else { return output.fail(&broken()) };
    let [document, result, code] = record.pick(["document", "result", "exit_code"]);
    if record.member("recorded").is_some_and(|it| it.as_str() == "false") {
        output.say("warning: the gateway could not write this call into its journal");
    }
    let exit = code.and_then(|it| it.decode().ok()).and_then(Exit::of_call);
    let (Some(document), Some(exit)) = (document, exit) else { return output.fail(&broken()) };
    match result {
        _ if output.json => output.raw_json(&document),
        Some(result) => say_result(&result, args, output),
        None => {
            let error = document.member("error").map(|it| it.decode_or_default()).unwrap_or_default();
            output.complain(CommandError::of_json(error, exit).to_text());
        }
    }
    exit
}

/// The error for a gateway that disconnected or sent an unreadable answer after it may have started the call.
fn broken() -> CommandError {
    let error = json!({
        "type": "MCPConnectionError",
        "message": "the running gateway went away before it answered",
        "hint": "the tool may have run; `--direct` calls without the gateway",
        "phase": "call",
        "sent": "unknown",
    });
    CommandError::of_json(error, Exit::Unavailable)
}
