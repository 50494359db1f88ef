//! Sends a call to the gateway that runs in the same state folder. Its servers are already running, so this takes
//! milliseconds.
//!
//! The gateway returns the full call record, and the output is the same as that of a direct call. If the gateway
//! cannot make the call (it is shutting down, does not have the tool, or refuses our token), `wharf call` starts the
//! server.

use super::{
    super::gateway_client::{GatewayClient, response_error},
    print_result,
};
use crate::{
    api::CALL_RECORD,
    arguments::{Parameters, TypedArguments},
    cli::CallArgs,
    command_error::CommandError,
    content::printable,
    exit::Exit,
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
    gateway: &GatewayClient,
    typed: &TypedArguments,
    timeout: Option<Duration>,
    args: &CallArgs,
    output: Output,
) -> Option<Exit> {
    let tool = find_tool(gateway, &args.tool).await?;
    let aliases = serde_json::from_value(tool["aliases"].clone()).unwrap_or_default();
    let arguments = match typed.to_object(&args.tool, &Parameters::of(&tool["input_schema"], aliases)) {
        Ok(arguments) => arguments,
        Err(errors) => return Some(output.fail(&errors.into())),
    };
    let word = |key: &str| printable(tool[key].as_str().unwrap_or_default());
    let progress = Progress::new(output);
    let waiting = progress.line(&word("source"), &format!("runs {}", word("wire_name")));
    let tool_path = format!("{}/call", tool_path(tool["tool_id"].as_str()?));
    let answered =
        gateway.send("POST", &tool_path, CALL_RECORD, Some(request_body(&arguments, timeout))).await;
    drop(waiting);
    match answered {
        Ok((StatusCode::OK, bytes)) => Some(print_record(bytes, args, output)),
        Ok((StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE, _)) => None,
        Ok((status, bytes)) => {
            let error = response_error(status, &serde_json::from_slice(&bytes).unwrap_or_default());
            Some(output.fail(&CommandError::new("MCPError", &error.message, error.exit)))
        }
        Err(send_error) if !send_error.may_have_been_sent => None,
        Err(_) => Some(output.fail(&gateway_disconnected())),
    }
}

/// Finds the tool in the gateway. Ignores a gateway of an older version, which does not return argument aliases.
async fn find_tool(gateway: &GatewayClient, tool: &str) -> Option<Value> {
    let (status, bytes) = gateway.send("GET", &tool_path(tool), "application/json", None).await.ok()?;
    let tool: Value = serde_json::from_slice(&bytes).ok().filter(|_| status == StatusCode::OK)?;
    tool.get("aliases").is_some().then_some(tool)
}

fn tool_path(tool: &str) -> String {
    format!("/api/v1/tools/{}", utf8_percent_encode(tool, NON_ALPHANUMERIC))
}

/// Builds the request body. Embeds the arguments as raw JSON, so that numbers keep every digit.
fn request_body(arguments: &Raw, timeout: Option<Duration>) -> String {
    let timeout = timeout.map_or_else(String::new, |it| format!(",\"timeout\":{}", it.as_secs_f64()));
    format!("{{\"arguments\":{}{timeout}}}", arguments.as_str())
}

/// Prints the same output as a direct call.
fn print_record(bytes: Vec<u8>, args: &CallArgs, output: Output) -> Exit {
    let Ok(record) = Raw::parse(bytes) else { return output.fail(&gateway_disconnected()) };
    let [document, result, code] = record.pick(["document", "result", "exit_code"]);
    if record.member("recorded").is_some_and(|it| it.as_str() == "false") {
        output.print_info("warning: the gateway could not record this call in its journal");
    }
    let exit = code.and_then(|it| it.decode().ok()).and_then(Exit::of_call);
    let (Some(document), Some(exit)) = (document, exit) else { return output.fail(&gateway_disconnected()) };
    match result {
        _ if output.json => output.raw_json(&document),
        Some(result) => print_result(&result, args.save.as_deref(), output),
        None => {
            let error = document.member("error").map(|it| it.decode_or_default()).unwrap_or_default();
            output.print_error(CommandError::from_json(error, exit).to_text());
        }
    }
    exit
}

/// The error for a gateway that disconnected or sent an unreadable answer after it may have started the call.
fn gateway_disconnected() -> CommandError {
    let error = json!({
        "type": "MCPConnectionError",
        "message": "the running gateway disconnected before it answered",
        "hint": "the tool may have run; `--direct` calls without the gateway",
        "phase": "call",
        "sent": "unknown",
    });
    CommandError::from_json(error, Exit::Unavailable)
}
