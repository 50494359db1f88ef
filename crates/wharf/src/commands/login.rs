//! `wharf login`: signs in to a remote server, with a person at the browser.

mod browser;

use super::list::{fault_text, unknown};
use crate::{dock::Dock, exit::Exit};
use browser::Loopback;
use std::sync::Arc;
use wharf_runtime::upstream::Login;

pub(super) async fn run(dock: Dock, name: String, logout: bool) -> Exit {
    let output = dock.output;
    if let Some(complaint) = unknown(&dock, &name) {
        output.complain(&complaint);
        return Exit::Usage;
    }
    let Some(upstream) = dock.upstream(&name) else { return Exit::Usage };
    let done = if logout {
        upstream.logout().await.map(|()| format!("what `{name}` had granted is forgotten"))
    } else {
        let browser = match Loopback::open(output).await {
            Ok(browser) => browser,
            Err(error) => {
                output.complain(&format!("error: cannot wait for the browser: {error}\n"));
                return Exit::Unavailable;
            }
        };
        upstream.login(Arc::new(browser)).await.map(|login| match login {
            Login::Granted => format!("signed in to `{name}`"),
            Login::NotNeeded => format!("`{name}` lets us in without signing in"),
        })
    };
    match done {
        Ok(sentence) => {
            output.say(&sentence);
            Exit::Fine
        }
        Err(fault) => {
            output.complain(&fault_text(&fault));
            fault.kind.into()
        }
    }
}
