//! `wharf lock --accept … --server` and `--from-server`: the lock of a running gateway.

use super::{
    super::gateway_client::{GatewayClient, response_error},
    lock_path::LockPath,
};
use crate::{
    command_error::CommandError, environment::Environment, exit::Exit, output::Output, signals::interrupted,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::runtime;
use wharf_config::LockFile;

/// A request to a running gateway.
pub(super) enum RemoteRequest<'a> {
    /// Accept the current definitions of these tools.
    Accept(&'a [String]),
    /// Write what was accepted there into the file.
    Download(&'a LockPath),
}

/// Sends the request to the gateway at this address.
pub(super) fn run(
    server: &str,
    request: &RemoteRequest<'_>,
    environment: &Environment,
    output: Output,
) -> Exit {
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return output.fail(&CommandError::new("MCPError", &error.to_string(), Exit::InternalError));
        }
    };
    let done = runtime.block_on(async {
        tokio::select! {
            done = send(server, request, environment, output) => done,
            signal = interrupted() => Err(CommandError::interrupted(signal)),
        }
    });
    done.map_or_else(|error| output.fail(&error), |()| Exit::Success)
}

async fn send(
    server: &str,
    request: &RemoteRequest<'_>,
    environment: &Environment,
    output: Output,
) -> Result<(), CommandError> {
    let gateway = GatewayClient::new(server, environment.token());
    let gateway = gateway.map_err(|it| CommandError::new("MCPError", &it.message, it.exit))?;
    match request {
        RemoteRequest::Accept(ids) => accept(&gateway, ids, output).await,
        RemoteRequest::Download(path) => {
            let file = gateway.request("GET", "/api/v1/lock/file", None).await;
            let file = file.map_err(|it| CommandError::new("MCPError", &it.message, Exit::Unavailable))?;
            let lock = LockFile::parse(file.to_string().as_bytes()).map_err(|error| {
                let complaint = format!("the lock of the gateway cannot be used: {error}");
                CommandError::new("MCPError", &complaint, Exit::Unavailable)
            })?;
            path.write(&lock.to_text())?;
            match output.json {
                true => output.json(&json!({ "written": true })),
                false => output.data("wharf.lock is that of the gateway\n"),
            }
            Ok(())
        }
    }
}

/// Accepts exactly the definitions that the gateway shows now.
async fn accept(gateway: &GatewayClient, ids: &[String], output: Output) -> Result<(), CommandError> {
    let items = gateway.fetch_all("/api/v1/lock").await;
    let items = items.map_err(|it| CommandError::new("MCPError", &it.message, it.exit))?;
    let mut accepted = Vec::new();
    for id in ids {
        let mut found = items.iter().filter(|it| is_named(it, id) && differs(it)).peekable();
        if found.peek().is_none() {
            let complaint = format!("`{id}` does not differ from the lock of the gateway");
            return Err(CommandError::new("MCPToolNotFoundError", &complaint, Exit::NotFound));
        }
        for item in found {
            let (kind, source, name) = (&item["kind"], &item["source"], &item["name"]);
            let body = json!({ "kind": kind, "source": source, "name": name, "hash": item["hash"] });
            accepted.push(post_accepted(gateway, body.to_string()).await?);
        }
    }
    match output.json {
        true => output.json(&json!({ "accepted": accepted })),
        false => output.data(&ids.iter().map(|it| format!("{it} is accepted\n")).collect::<String>()),
    }
    Ok(())
}

/// Accepts one definition. The exit code is 1 only if it changed again after the list was read.
async fn post_accepted(gateway: &GatewayClient, body: String) -> Result<Value, CommandError> {
    let sent = gateway.send("POST", "/api/v1/lock/accepted", "*/*", Some(body)).await;
    let (status, text) =
        sent.map_err(|it| CommandError::new("MCPError", &it.error.message, it.error.exit))?;
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    if status.is_success() {
        return Ok(answer);
    }
    let error = response_error(status, &answer);
    let exit = if status == StatusCode::CONFLICT { Exit::ToolError } else { error.exit };
    Err(CommandError::new("MCPError", &error.message, exit))
}

/// Returns whether this is `SERVER:NAME` of a tool, prompt or template, or `SERVER` of instructions.
fn is_named(item: &Value, id: &str) -> bool {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match text("kind") {
        "instructions" => text("source") == id,
        _ => id.strip_prefix(text("source")).and_then(|it| it.strip_prefix(':')) == Some(text("name")),
    }
}

fn differs(item: &Value) -> bool {
    matches!(item["state"].as_str(), Some("changed" | "new"))
}
