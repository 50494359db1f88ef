//! `wharf prompts` and `wharf resources`: list what the servers offer. `wharf tools` shares the helpers.

use super::tools::first_line;
use crate::{
    app::{App, ConnectedSource, Connections},
    command_error::CommandError,
    content::printable,
    exit::Exit,
    output::Output,
};
use serde_json::{Value, json};
use wharf_mcp::{
    Raw,
    session::{Era, List},
};
use wharf_runtime::{
    Catalog, Fault,
    catalog::{PromptEntry, Sourced},
    views,
};

pub(super) async fn prompts(app: App, name: Option<String>) -> Exit {
    list(app, name, &[List::Prompts], "prompts", |connections| {
        let prompts = connections.catalog.prompts.iter();
        let rows = prompts.map(|PromptEntry { source, prompt, .. }| {
            row(source, &prompt.name, prompt.description.as_deref(), &prompt.raw)
        });
        rows.chain(odd(connections)).collect()
    })
    .await
}

pub(super) async fn resources(app: App, name: Option<String>) -> Exit {
    list(app, name, &[List::Resources, List::Templates], "resources", |connections| {
        let resources =
            connections.catalog.resources.iter().map(|Sourced { source, item }| {
                row(source, &item.uri, item.description.as_deref(), &item.raw)
            });
        let templates = connections.catalog.templates.iter().map(|Sourced { source, item }| {
            row(source, &item.uri_template, item.description.as_deref(), &item.raw)
        });
        resources.chain(templates).chain(odd(connections)).collect()
    })
    .await
}

/// One listed tool, prompt or resource.
pub(super) struct Row {
    pub(super) source: String,
    pub(super) name: String,
    pub(super) about: String,
    pub(super) json: Value,
}

fn row(source: &str, name: &str, about: Option<&str>, raw: &Raw) -> Row {
    let mut json: Value = raw.decode_or_default();
    if let Some(object) = json.as_object_mut() {
        object.insert("source".to_owned(), json!(source));
    }
    let (source, name, about) = (source.to_owned(), name.to_owned(), about.unwrap_or_default().to_owned());
    Row { source, name, about, json }
}

/// Returns a row for each listed item that could not be decoded.
fn odd(connections: &Connections) -> impl Iterator<Item = Row> {
    connections.catalog.odd.iter().map(|it| row(&it.source, "(unreadable)", Some(&it.why), &it.raw))
}

async fn list(
    app: App,
    name: Option<String>,
    lists: &'static [List],
    what: &'static str,
    rows: impl Fn(&Connections) -> Vec<Row>,
) -> Exit {
    if let Some(error) = name.as_deref().and_then(|name| unknown_server(&app, name)) {
        return app.output.fail(&error);
    }
    let connections =
        app.connect(|it| name.as_deref().is_none_or(|name| it.name.expose() == name), lists).await;
    let rows = rows(&connections);
    let output = app.output;
    if output.json {
        let sources: Vec<Value> =
            connections.sources.iter().map(|it| source_json(it, &connections.catalog)).collect();
        let items: Vec<Value> = rows.into_iter().map(|it| it.json).collect();
        output.json(&json!({ what: items, "sources": sources }));
    } else {
        output.data(&to_text(&rows, &connections));
    }
    let exit = report_failures(&connections, output);
    connections.close().await;
    exit
}

/// Prints the failures and returns the exit code. Fails only if every server failed, or a required server did.
pub(super) fn report_failures(connections: &Connections, output: Output) -> Exit {
    connections.faults().for_each(|it| output.print_error(&fault_text(it)));
    for (list, fault) in connections.sources.iter().flat_map(|it| &it.unread) {
        output.print_info(&format!(
            "warning: `{}` could not answer {}: {}",
            fault.source,
            list.method(),
            fault.cause
        ));
    }
    let failed = connections.faults().count();
    let all_failed = failed > 0 && failed == connections.sources.len();
    let fatal = all_failed || connections.sources.iter().any(|it| it.source.required && !it.is_connected());
    if fatal { Exit::Unavailable } else { Exit::Success }
}

fn to_text(rows: &[Row], connections: &Connections) -> String {
    let well = connections.sources.iter().filter(|it| it.is_connected());
    well.map(|it| section(it.source.name.expose(), it.source.name.shown(), rows)).collect()
}

/// Formats the items of one source under its name.
pub(super) fn section(source: &str, shown: &str, rows: &[Row]) -> String {
    let own: Vec<&Row> = rows.iter().filter(|it| it.source == source).collect();
    let width = own.iter().map(|it| it.name.chars().count()).max().unwrap_or_default().min(64);
    let mut out = format!("{shown} ({})\n", own.len());
    for Row { name, about, .. } in own {
        out.push_str(format!("  {:<width$}  {}", printable(name), first_line(about)).trim_end());
        out.push('\n');
    }
    out
}

/// Formats a fault as text: the error, the server's last stderr output and a hint.
pub(super) fn fault_text(fault: &Fault) -> String {
    CommandError::from(fault).to_text().to_owned()
}

pub(super) fn unknown_server(app: &App, name: &str) -> Option<CommandError> {
    let names: Vec<&str> = app.plan.sources.iter().map(|it| it.name.expose()).collect();
    (!names.contains(&name)).then(|| {
        let shown: Vec<&str> = app.plan.sources.iter().map(|it| it.name.shown()).collect();
        CommandError::usage(&format!(
            "there is no server '{name}'\nhelp: the agent file has {}",
            shown.join(", ")
        ))
    })
}

/// Describes one server as JSON, with its tool count from this catalog.
pub(super) fn source_json(it: &ConnectedSource, catalog: &Catalog) -> Value {
    let well = it.is_connected();
    let tools = catalog.tools.iter().filter(|tool| it.is_named(&tool.source)).count();
    let mut shown = json!({
        "name": it.source.name.shown(),
        "transport": it.source.endpoint.transport(),
        "state": if well { "connected" } else { "error" },
        "era": it.status.era.filter(|_| well).map(Era::as_str),
        "protocol_version": it.status.version.as_ref().filter(|_| well),
        "error": it.fault.as_deref().map(views::error),
        "tools": if well { tools } else { 0 },
        "initialization_time": it.status.took.filter(|_| well).map(|it| it.as_secs_f64()),
    });
    if !it.unread.is_empty() {
        let unread = it.unread.iter();
        let unread =
            unread.map(|(list, fault)| json!({ "list": list.method(), "error": views::error(fault) }));
        shown["warnings"] = json!(unread.collect::<Vec<_>>());
    }
    shown
}
