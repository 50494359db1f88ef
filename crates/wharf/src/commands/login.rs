//! `wharf login`: signs in to a remote server through the user's browser.

mod browser;

use super::list::unknown_server;
use crate::{app::App, command_error::CommandError, exit::Exit};
use browser::LoopbackListener;
use serde_json::json;
use std::sync::Arc;
use wharf_runtime::upstream::Login;

pub(super) async fn run(app: App, name: String, logout: bool) -> Exit {
    let output = app.output;
    if let Some(error) = unknown_server(&app, &name).or_else(|| not_remote(&app, &name)) {
        return output.fail(&error);
    }
    let Some(upstream) = app.upstream(&name) else { return Exit::Usage };
    let outcome = if logout {
        let forgotten = format!("signed out of `{name}`");
        upstream.logout().await.map(|()| ("signed_out", forgotten))
    } else {
        let browser = match LoopbackListener::open(output).await {
            Ok(browser) => browser,
            Err(error) => {
                let complaint = format!("cannot listen for the redirect of the browser: {error}");
                return output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable));
            }
        };
        upstream.login(Arc::new(browser)).await.map(|login| match login {
            Login::Granted => ("signed_in", format!("signed in to `{name}`")),
            Login::NotNeeded => ("not_needed", format!("`{name}` does not require signing in")),
        })
    };
    match outcome {
        Ok((state, _)) if output.json => {
            output.json(&json!({ "server": name, "state": state }));
            Exit::Success
        }
        Ok((_, sentence)) => {
            output.print_info(&sentence);
            Exit::Success
        }
        Err(fault) => output.fail(&CommandError::from(&fault)),
    }
}

/// Returns an error if the source is not reached over HTTP, because only HTTP servers can require a sign-in.
fn not_remote(app: &App, name: &str) -> Option<CommandError> {
    let source = app.plan.sources.iter().find(|it| it.name.expose() == name)?;
    let transport = source.endpoint.transport();
    let is_remote = matches!(transport, "http" | "sse");
    (!is_remote).then(|| {
        CommandError::usage(&format!(
            "'{name}' is not a remote server\nhelp: only servers with `transport: http` or `sse` \
             have a login, and this one uses {transport}"
        ))
    })
}
