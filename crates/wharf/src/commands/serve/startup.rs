//! Prints the startup messages of `wharf serve`: the addresses, how to try them, and the status of each server.
//!
//! Prints the addresses as soon as the port is open, and each server's status once its start has succeeded or failed.

use crate::{
    app::ConnectedSource, commands::list::source_json, content::printable, output::Output,
    startup_memory::release_startup_memory,
};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    fmt::Write,
    future,
    io::{self, IsTerminal},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time;
use wharf_runtime::{Catalog, Handle, catalog::Discovery};

/// Time from the end of the start until its memory is returned. That stops the main thread for 2 ms, and clients often
/// connect at once.
const RELEASE_DELAY: Duration = Duration::from_millis(300);

/// Maximum time that the `--json` document waits for servers to start.
const JSON_TIMEOUT: Duration = Duration::from_secs(10);

/// Command that adds this gateway to a client's configuration.
const CONNECT_COMMAND: &str = "wharf connect claude";

/// Credentials that a client must send.
#[derive(Clone, Debug)]
pub(super) enum Access {
    /// No credentials.
    Open,
    /// The token in the operator's environment variable.
    Variable,
    /// The token in this file.
    File(PathBuf),
}

/// Information that the startup messages contain.
pub(super) struct Startup {
    pub(super) output: Output,
    pub(super) address: SocketAddr,
    pub(super) access: Access,
    /// The agent file. `None` if there is none and the gateway serves the built-in Todo server.
    pub(super) agent_file: Option<PathBuf>,
    /// Number of rules for faults to inject, if there are any.
    pub(super) faults: Option<usize>,
    /// Whether the `--json` document has been printed.
    pub(super) is_printed: Cell<bool>,
}

impl Startup {
    /// Whether the link to the console is printed with a ticket: only on a terminal, because logs are kept.
    pub(super) fn shows_ticket(&self) -> bool {
        !self.output.json && !self.output.quiet && io::stderr().is_terminal()
    }

    /// Prints the addresses and how to use them. `console_path` is the path of the console, with a ticket if it may be
    /// shown. Prints nothing with `--json`: that document follows later.
    pub(super) fn print_addresses(&self, handle: &Handle, console_path: &str) {
        if self.output.json || self.output.quiet {
            return;
        }
        self.output.print_info(&self.serving_line(handle.sources().len()));
        if let Some(rules) = self.faults {
            let plural = if rules == 1 { "" } else { "s" };
            self.output
                .print_info(&format!("warning: faults are injected into calls ({rules} rule{plural})"));
        }
        if let Access::File(path) = &self.access {
            self.output.print_info(&format!("the token is in {}", path.display()));
        }
        self.output.print_info(&format!("Console  {}", self.url(console_path)));
        let (rest, mcp, docs) = (self.url("/api/v1"), self.url("/mcp"), self.url("/docs"));
        self.output.data(&format!("REST  {rest}\nMCP   {mcp}\nDocs  {docs}\n"));
        self.output.print_info(&format!("try it: {}", self.curl()));
        self.output.print_info(&format!(
            "connect Claude, VS Code or Cursor: {CONNECT_COMMAND} (or vscode, cursor, …)"
        ));
    }

    /// Prints a line for each server once its start has succeeded or failed; with `--json`, prints one document for
    /// all. Then the start is over. Never returns, because it runs beside the gateway.
    pub(super) async fn report_servers(&self, handle: Handle) {
        if self.output.json {
            let _ = time::timeout(JSON_TIMEOUT, handle.settled()).await;
            self.print_document(&handle);
        } else if !self.output.quiet {
            self.print_settled(&handle).await;
        }
        handle.settled().await;
        time::sleep(RELEASE_DELAY).await;
        release_startup_memory();
        // Release the handle: this future stays pending until shutdown.
        drop(handle);
        future::pending().await
    }

    /// Prints the `--json` document once. Also called at shutdown, for a gateway that stops before its servers are
    /// ready.
    pub(super) fn print_document(&self, handle: &Handle) {
        if self.output.json && !self.is_printed.replace(true) {
            self.output.json(&self.document(handle));
        }
    }

    async fn print_settled(&self, handle: &Handle) {
        let mut waiting: Vec<String> =
            handle.sources().iter().map(|it| it.source.name.expose().to_owned()).collect();
        let width = waiting.iter().map(|it| it.chars().count()).max().unwrap_or_default();
        let mut catalogs = handle.catalogs();
        while !waiting.is_empty() {
            let catalog = catalogs.borrow_and_update().clone();
            let sources = handle.sources();
            waiting.retain(|name| {
                let Some(state) = sources.iter().find(|it| it.source.name.expose() == name) else {
                    return false;
                };
                let is_pending = matches!(catalog.discovery(name), None | Some(Discovery::Pending));
                if !is_pending {
                    let source = ConnectedSource::new(state.clone(), &catalog);
                    self.output.print_info(&settled_line(&source, &catalog, width));
                }
                is_pending
            });
            if !waiting.is_empty() && catalogs.changed().await.is_err() {
                return;
            }
        }
    }

    fn document(&self, handle: &Handle) -> Value {
        let catalog = handle.catalog();
        let sources = handle.sources().into_iter().map(|state| {
            let source = ConnectedSource::new(state, &catalog);
            let mut shown = source_json(&source, &catalog);
            match catalog.discovery(source.source.name.expose()) {
                None | Some(Discovery::Pending) => shown["state"] = json!("connecting"),
                Some(Discovery::NotStarted) => shown["state"] = json!("startup"),
                Some(Discovery::Done | Discovery::Failed(_)) => {}
            }
            shown
        });
        let mut document = json!({
            "agent_file": self.agent_file,
            "addresses": {
                "rest": self.url("/api/v1"),
                "mcp": self.url("/mcp"),
                "docs": self.url("/docs"),
                "console": self.url("/"),
            },
            "token_file": match &self.access {
                Access::File(path) => Some(path),
                Access::Open | Access::Variable => None,
            },
            "curl": self.curl(),
            "connect": CONNECT_COMMAND,
            "sources": sources.collect::<Vec<Value>>(),
        });
        if let Some(rules) = self.faults {
            document["faults"] = json!(rules);
        }
        document
    }

    fn serving_line(&self, count: usize) -> String {
        match &self.agent_file {
            None => "serving the built-in Todo server: there is no agent.yaml here (`wharf init` writes one)"
                .to_owned(),
            Some(path) => {
                let servers = if count == 1 { "server" } else { "servers" };
                format!("serving {count} {servers}, configured by {}", path.display())
            }
        }
    }

    /// Returns a URL of the gateway that works on this machine.
    fn url(&self, path: &str) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        format!("http://{}{path}", SocketAddr::new(ip, self.address.port()))
    }

    /// Returns a `curl` command to paste. The shell reads the token, so the output does not contain it.
    fn curl(&self) -> String {
        let token = match &self.access {
            Access::Open => String::new(),
            Access::Variable => "-H \"Authorization: Bearer $WHARF_TOKEN\" ".to_owned(),
            Access::File(path) => format!("-H \"Authorization: Bearer $(cat {})\" ", shell_quote(path)),
        };
        format!("curl {token}{}", self.url("/api/v1/tools"))
    }
}

/// Formats the status of one server: `ok` with its tools and time, `FAIL` with the cause and a hint, or `-` if it
/// starts with its first call.
fn settled_line(source: &ConnectedSource, catalog: &Catalog, width: usize) -> String {
    let name = printable(source.source.name.shown());
    match (&source.fault, catalog.discovery(source.source.name.expose())) {
        (Some(fault), _) => {
            let mut line = format!("FAIL  {name:<width$}  {}", printable(&fault.to_string()));
            if let Some(hint) = &fault.hint {
                let _ = write!(line, "\n      help: {}", printable(hint));
            }
            line
        }
        (None, Some(Discovery::NotStarted)) => format!("-     {name:<width$}  starts with its first call"),
        (None, _) => {
            let tools = catalog.tools.iter().filter(|it| source.is_named(&it.source)).count();
            let noun = if tools == 1 { "tool" } else { "tools" };
            let took = source.status.took.unwrap_or_default().as_secs_f64();
            format!("ok    {name:<width$}  {tools} {noun}, ready after {took:.1} s")
        }
    }
}

/// Quotes a path as one shell word.
fn shell_quote(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::Colour, output::JsonDocument};

    fn startup(address: &str, access: Access) -> Startup {
        let output =
            Output { json: false, quiet: false, colour: Colour::Never, document: JsonDocument::Plain };
        Startup {
            output,
            address: address.parse().unwrap(),
            access,
            agent_file: None,
            faults: None,
            is_printed: Cell::new(false),
        }
    }

    #[test]
    fn curl_line_reads_the_token_from_its_source() {
        let cases = [
            ("127.0.0.1:7373", Access::Open, "curl http://127.0.0.1:7373/api/v1/tools"),
            (
                "0.0.0.0:80",
                Access::Variable,
                "curl -H \"Authorization: Bearer $WHARF_TOKEN\" http://127.0.0.1:80/api/v1/tools",
            ),
            (
                "[::]:80",
                Access::File("/state/token".into()),
                "curl -H \"Authorization: Bearer $(cat /state/token)\" http://[::1]:80/api/v1/tools",
            ),
            (
                "127.0.0.1:1",
                Access::File("/it's here/token".into()),
                r#"curl -H "Authorization: Bearer $(cat '/it'\''s here/token')" http://127.0.0.1:1/api/v1/tools"#,
            ),
        ];
        for (address, access, expected) in cases {
            assert_eq!(startup(address, access).curl(), expected);
        }
    }
}
