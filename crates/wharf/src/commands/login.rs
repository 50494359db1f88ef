//! `wharf login`: signs in to a remote server through the user's browser.

mod browser;

use super::list::unknown;
use crate::{command_error::CommandError, dock::Dock, exit::Exit};
use browser::Loopback;
use serde_json::json;
use std::sync::Arc;
use wharf_runtime::upstream::Login;

pub(super) async fn run(dock: Dock, name: String, logout: bool) -> Exit {
    let output = dock.output;
    if let Some(error) = unknown(&dock, &name).or_else(|| not_remote(&dock, &name)) {
        return output.fail(&error);
    }
    let Some(upstream) = dock.upstream(&name) else { return Exit::Usage };
    let done = if logout {
        let forgotten = format!("what `{name}` had granted is forgotten");
        upstream.logout().await.map(|()| ("signed_out", forgotten))
    } else {
        let browser = match Loopback::open(output).await {
            Ok(browser) => browser,
            Err(error) => {
                let complaint = format!("cannot wait for the browser: {error}");
                return output.fail(&CommandError::new("MCPError", &complaint, Exit::Unavailable));
            }
        };
        upstream.login(Arc::new(browser)).await.map(|login| match login {
            Login::Granted => ("signed_in", format!("signed in to `{name}`")),
            Login::NotNeeded => ("not_needed", format!("`{name}` lets us in without signing in")),
        })
    };
    match done {
        Ok((state, _)) if output.json => {
            output.json(&json!({ "server": name, "state": state }));
            Exit::Fine
        }
        Ok((_, sentence)) => {
            output.say(&sentence);
            Exit::Fine
        }
        Err(fault) => output.fail(&CommandError::from(&fault)),
    }
}

/// Returns an error if the source is not reached over HTTP, because only HTTP servers can require a sign-in.
fn not_remote(dock: &Dock, name: &str) -> Option<CommandError> {
    let source = dock.sources().iter().find(|it| it.name.expose() == name)?;
    let transport = source.endpoint.transport();
    let is_remote = matches!(transport, "http" | "sse");
    (!is_remote).then(|| {
        CommandError::usage(&format!(
            "'{name}' is not a remote server\nhelp: there is nothing to sign in to over {transport}; only \
             `transport: http` and `sse` have that"
        ))
    })
}
