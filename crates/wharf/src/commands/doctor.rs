//! `wharf doctor`: shows the status of every server, and a hint for each problem.

use super::list::{source_json, unknown_server};
use crate::{
    app::{App, ConnectedSource, Connections},
    content::printable,
    exit::Exit,
};
use serde_json::{Value, json};
use wharf_config::Source;
use wharf_mcp::session::List;
use wharf_runtime::Fault;

pub(super) async fn run(app: App, name: Option<String>) -> Exit {
    if let Some(error) = name.as_deref().and_then(|name| unknown_server(&app, name)) {
        return app.output.fail(&error);
    }
    let is_wanted = |it: &Source| name.as_deref().is_none_or(|name| it.name.expose() == name);
    let connections = app.connect(is_wanted, &[List::Tools, List::Prompts, List::Resources]).await;
    let output = app.output;
    let all_healthy = connections.sources.iter().all(ConnectedSource::is_connected);
    if output.json {
        let sources: Vec<Value> =
            connections.sources.iter().map(|it| source_json(it, &connections.catalog)).collect();
        output.json(&json!({ "ok": all_healthy, "sources": sources }));
    } else {
        let names = connections.sources.iter().map(|it| it.source.name.shown().chars().count());
        let width = names.max().unwrap_or_default();
        let rows: String = connections.sources.iter().map(|it| row(it, &connections, width)).collect();
        output.print_states(&rows);
    }
    connections.close().await;
    if all_healthy { Exit::Success } else { Exit::Unavailable }
}

/// Formats the status of one server. A working one gets a line, and more lines for lists it could not return. A
/// failed one gets the cause, its last stderr output and a hint.
fn row(it: &ConnectedSource, connections: &Connections, width: usize) -> String {
    let (name, transport) = (it.source.name.shown(), it.source.endpoint.transport());
    let catalog = &connections.catalog;
    match &it.fault {
        None => {
            let state = if it.unread.is_empty() { "ok  " } else { "warn" };
            let unread = it.unread.iter().map(|(list, fault)| {
                format!(
                    "      {} failed: {}: {}\n{}",
                    list.method(),
                    fault.kind.as_str(),
                    fault.cause,
                    help(fault)
                )
            });
            format!(
                "{state}  {name:<width$}  {transport:<9}  {}  {}, {}, {}  ready after {:.1} s\n{}",
                it.status.version.as_deref().unwrap_or_default(),
                count(catalog.tools.iter().filter(|tool| it.is_named(&tool.source)).count(), "tool"),
                count(catalog.prompts.iter().filter(|prompt| it.is_named(&prompt.source)).count(), "prompt"),
                count(
                    catalog.resources.iter().filter(|resource| it.is_named(&resource.source)).count(),
                    "resource"
                ),
                it.status.took.unwrap_or_default().as_secs_f64(),
                unread.collect::<String>(),
            )
        }
        Some(fault) => {
            let stderr = fault.stderr.lines().map(|it| format!("        | {}\n", printable(it)));
            let details: String = stderr.chain([help(fault)]).collect();
            let (kind, cause, target) = (fault.kind.as_str(), &fault.cause, &fault.target);
            format!("FAIL  {name:<width$}  {transport:<9}  {target}\n      {kind}: {cause}\n{details}")
        }
    }
}

fn help(fault: &Fault) -> String {
    fault.hint.as_ref().map(|it| format!("      help: {it}\n")).unwrap_or_default()
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
