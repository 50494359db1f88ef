//! `wharf sources`: manages the sources of a running gateway over its REST API.

use super::gateway_client::{GatewayClient, GatewayClientError, gateway_url};
use crate::{
    cli::{SourcesArgs, SourcesCommand},
    command_error::CommandError,
    content::printable,
    environment::Environment,
    exit::Exit,
    output::Output,
    signals::interrupted,
};
use serde_json::Value;
use std::{
    io::{self, Read},
    path::Path,
};
use tokio::runtime;
use wharf_config::{FileError, read_regular};

/// Maximum size of a source description, in bytes.
const MAX_SOURCE_BYTES: u64 = 4 << 20;

pub(super) fn run(args: &SourcesArgs, environment: &Environment, output: Output) -> Exit {
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return output.fail(&CommandError::new("MCPError", &error.to_string(), Exit::InternalError));
        }
    };
    let result = runtime.block_on(async {
        tokio::select! {
            result = run_command(args, environment, output) => result.map_err(|it| CommandError::new("MCPError", &it.message, it.exit)),
            signal = interrupted() => Err(CommandError::interrupted(signal)),
        }
    });
    result.map_or_else(|error| output.fail(&error), |()| Exit::Success)
}

async fn run_command(
    args: &SourcesArgs,
    environment: &Environment,
    output: Output,
) -> Result<(), GatewayClientError> {
    let server = gateway_url(args.server.as_deref(), environment);
    let gateway = GatewayClient::new(&server, environment.token())?;
    match &args.command {
        SourcesCommand::List => {
            let all = gateway.fetch_all("/api/v1/sources").await?;
            show(output, &serde_json::json!({ "sources": all }), || format_table(&all));
        }
        SourcesCommand::Add { source } => {
            let body = read(source).map_err(|why| GatewayClientError::usage(&why))?;
            let source = gateway.request("POST", "/api/v1/sources", Some(body)).await?;
            show(output, &source, || format_added(&source));
            warn(output, &source);
        }
        SourcesCommand::Remove { name } => {
            gateway.request("DELETE", &path(name, ""), None).await?;
            show(output, &serde_json::json!({ "ok": true }), || format!("{} is removed\n", printable(name)));
        }
        SourcesCommand::Refresh { name } => {
            let report = gateway.request("POST", &path(name, "/refresh"), None).await?;
            show(output, &report, || format_refreshed(name, &report));
        }
    }
    Ok(())
}

fn show(output: Output, value: &Value, text: impl FnOnce() -> String) {
    if output.json {
        output.json(value);
    } else {
        output.data(&text());
    }
}

fn path(name: &str, rest: &str) -> String {
    let name = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
    format!("/api/v1/sources/{name}{rest}")
}

/// Reads the JSON of the source to register: from a file, from standard input, or from the argument itself.
fn read(source: &str) -> Result<String, String> {
    let unreadable = |why: &dyn std::fmt::Display| format!("`{source}` {why}");
    let text = match source {
        it if it.trim_start().starts_with('{') => return Ok(it.to_owned()),
        "-" => {
            let mut text = String::new();
            let read = io::stdin().take(MAX_SOURCE_BYTES).read_to_string(&mut text);
            read.map_err(|error| format!("standard input cannot be read: {error}"))?;
            return Ok(text);
        }
        path => read_regular(Path::new(path), MAX_SOURCE_BYTES)
            .map_err(|trouble: FileError| unreadable(&trouble))?,
    };
    String::from_utf8(text).map_err(|_| unreadable(&"is not UTF-8"))
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("-")
}

/// Returns the state of a source as one word.
fn state(source: &Value) -> &str {
    match word(source, "state") {
        "ready" if !source["error"].is_null() => "error",
        state => state,
    }
}

/// Formats a line for each source. Below a failed one, adds the cause and a hint.
fn format_table(all: &[Value]) -> String {
    let head = ["NAME", "ORIGIN", "STATE", "HEALTH", "TRANSPORT", "TOOLS"].map(str::to_owned);
    let row = |it: &Value| {
        let cell = |key| printable(word(it, key));
        [
            cell("name"),
            cell("origin"),
            printable(state(it)),
            cell("health"),
            cell("transport"),
            it["tools"].to_string(),
        ]
    };
    let rows: Vec<[String; 6]> = [head].into_iter().chain(all.iter().map(row)).collect();
    let width = |at: usize| rows.iter().map(|it| it[at].chars().count()).max().unwrap_or_default();
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let causes = [String::new()].into_iter().chain(all.iter().map(format_error));
    rows.iter().map(line).zip(causes).map(|(line, error)| line + &error).collect()
}

/// Formats the error of a source and a hint. Empty if there is no error.
fn format_error(source: &Value) -> String {
    let labelled = |label: &str, text: &Value| {
        let text = text.as_str().map(|it| printable(it).replace('\n', "\n      "));
        text.map(|it| format!("      {label}{it}\n")).unwrap_or_default()
    };
    let error = &source["error"];
    labelled(&format!("{}: ", word(error, "type")), &error["message"]) + &labelled("help: ", &error["hint"])
}

fn format_added(source: &Value) -> String {
    let (name, id) = (printable(word(source, "name")), printable(word(source, "id")));
    format!("{name} is registered as {id}, with {} tools\n", source["tools"])
}

/// Warns about a source that is registered but does not work yet.
fn warn(output: Output, source: &Value) {
    let name = printable(word(source, "name"));
    let missing: Vec<&str> =
        source["missing"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !missing.is_empty() {
        output.print_error(&format!("warning: {name} is not ready: {} must be set\n", missing.join(", ")));
    } else if let Some(message) = source["error"]["message"].as_str() {
        output.print_error(&format!("warning: {name} cannot be used yet: {}\n", printable(message)));
        if let Some(hint) = source["error"]["hint"].as_str() {
            output.print_error(&format!("help: {}\n", printable(hint)));
        }
    }
}

fn format_refreshed(name: &str, report: &Value) -> String {
    let count = |key: &str| report[key].as_u64().unwrap_or_default();
    format!(
        "{}: {} tools, {} new, {} changed, {} gone\n",
        printable(name),
        count("tools_discovered"),
        count("tools_created"),
        count("tools_updated"),
        count("tools_deprecated")
    )
}
