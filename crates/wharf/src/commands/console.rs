//! `wharf console`: asks a running gateway for a ticket and opens its console in the browser.

use super::gateway_client::{GatewayClient, GatewayClientError, gateway_url};
use crate::{
    cli::ConsoleArgs, command_error::CommandError, environment::Environment, exit::Exit, output::Output,
    signals::interrupted,
};
use serde_json::json;
use std::process::{Command, Stdio};
use tokio::runtime;

pub(super) fn run(args: &ConsoleArgs, environment: &Environment, output: Output) -> Exit {
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return output.fail(&CommandError::new("MCPError", &error.to_string(), Exit::InternalError));
        }
    };
    let link = runtime.block_on(async {
        tokio::select! {
            link = fetch_link(args, environment) => link.map_err(|it| CommandError::new("MCPError", &it.message, it.exit)),
            signal = interrupted() => Err(CommandError::interrupted(signal)),
        }
    });
    let link = match link {
        Ok(link) => link,
        Err(error) => return output.fail(&error),
    };
    let is_opened = !args.no_open && open_browser(&link, environment);
    match output.json {
        true => output.json(&json!({ "url": link, "opened": is_opened })),
        false => output.data(&format!("{link}\n")),
    }
    if !is_opened && !args.no_open {
        output.print_info(
            "no browser could be started; open the link yourself. It works once, within 5 minutes",
        );
    }
    Exit::Success
}

/// Asks the gateway for a ticket and returns the link that contains it.
async fn fetch_link(args: &ConsoleArgs, environment: &Environment) -> Result<String, GatewayClientError> {
    let server = gateway_url(args.server.as_deref(), environment);
    let gateway = GatewayClient::new(&server, environment.token())?;
    let ticket = gateway.request("POST", "/api/v1/tickets", None).await?;
    let link = ticket["path"].as_str().and_then(|path| gateway.url_of(path));
    let no_link =
        || GatewayClientError::usage("the gateway issued no ticket\nhelp: it may be older than this wharf");
    link.map(String::from).ok_or_else(no_link)
}

/// Starts the user's browser and returns whether that worked. Without a desktop there is none to start.
fn open_browser(link: &str, environment: &Environment) -> bool {
    let program = match () {
        () if cfg!(target_os = "macos") => "open",
        () if cfg!(windows) => "explorer",
        () if environment.has_desktop() => "xdg-open",
        () => return false,
    };
    let mut command = Command::new(program);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // `xdg-open` and `open` start the browser and return, so waiting for them is short.
    command.status().is_ok_and(|it| it.success())
}
