//! `wharf prompts` and `wharf resources`: list what the servers offer. `wharf tools` shares the helpers.

use super::tools::first_line;
use crate::{
    command_error::CommandError,
    content::printable,
    dock::{Dock, Docked, DockedSource},
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
    project,
};

pub(super) async fn prompts(dock: Dock, name: Option<String>) -> Exit {
    list(dock, name, &[List::Prompts], "prompts", |docked| {
        let prompts = docked.catalog.prompts.iter();
        let rows = prompts.map(|PromptEntry { source, prompt, .. }| {
            row(source, &prompt.name, prompt.description.as_deref(), &prompt.raw)
        });
        rows.chain(odd(docked)).collect()
    })
    .await
}

pub(super) async fn resources(dock: Dock, name: Option<String>) -> Exit {
    list(dock, name, &[List::Resources, List::Templates], "resources", |docked| {
        let resources =
            docked.catalog.resources.iter().map(|Sourced { source, item }| {
                row(source, &item.uri, item.description.as_deref(), &item.raw)
            });
        let templates = docked.catalog.templates.iter().map(|Sourced { source, item }| {
            row(source, &item.uri_template, item.description.as_deref(), &item.raw)
        });
        resources.chain(templates).chain(odd(docked)).collect()
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
fn odd(docked: &Docked) -> impl Iterator<Item = Row> {
    docked.catalog.odd.iter().map(|it| row(&it.source, "(unreadable)", Some(&it.why), &it.raw))
}

async fn list(
    dock: Dock,
    name: Option<String>,
    lists: &'static [List],
    what: &'static str,
    rows: impl Fn(&Docked) -> Vec<Row>,
) -> Exit {
    if let Some(error) = name.as_deref().and_then(|name| unknown(&dock, name)) {
        return dock.output.fail(&error);
    }
    let docked = dock.connect(|it| name.as_deref().is_none_or(|name| it.name.expose() == name), lists).await;
    let rows = rows(&docked);
    let output = dock.output;
    if output.json {
        let sources: Vec<Value> = docked.sources.iter().map(|it| source_json(it, &docked)).collect();
        let items: Vec<Value> = rows.into_iter().map(|it| it.json).collect();
        output.json(&json!({ what: items, "sources": sources }));
    } else {
        output.data(&to_text(&rows, &docked));
    }
    let exit = verdict(&docked, output);
    docked.leave().await;
    exit
}

/// Prints the failures and returns the exit code. Fails only if every server failed, or a required server did.
pub(super) fn verdict(docked: &Docked, output: Output) -> Exit {
    docked.faults().for_each(|it| output.complain(&fault_text(it)));
    for (list, fault) in docked.sources.iter().flat_map(|it| &it.unread) {
        output.say(&format!(
            "warning: `{}` could not answer {}: {}",
            fault.source,
            list.method(),
            fault.cause
        ));
    }
    let failed = docked.faults().count();
    let hopeless = failed > 0 && failed == docked.sources.len();
    let fatal = hopeless || docked.sources.iter().any(|it| it.source.required && !it.is_well());
    if fatal { Exit::Unavailable } else { Exit::Fine }
}

fn to_text(rows: &[Row], docked: &Docked) -> String {
    let well = docked.sources.iter().filter(|it| it.is_well());
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

pub(super) fn unknown(dock: &Dock, name: &str) -> Option<CommandError> {
    let names: Vec<&str> = dock.sources().iter().map(|it| it.name.expose()).collect();
    (!names.contains(&name)).then(|| {
        let shown: Vec<&str> = dock.sources().iter().map(|it| it.name.shown()).collect();
        CommandError::usage(&format!(
            "there is no server '{name}'\nhelp: the agent file has {}",
            shown.join(", ")
        ))
    })
}

pub(super) fn source_json(it: &DockedSource, docked: &Docked) -> Value {
    source_json_in(it, &docked.catalog)
}

/// Describes one server as JSON, with its tool count from this catalog.
pub(super) fn source_json_in(it: &DockedSource, catalog: &Catalog) -> Value {
    let well = it.is_well();
    let tools = catalog.tools.iter().filter(|tool| it.has(&tool.source)).count();
    let mut shown = json!({
        "name": it.source.name.shown(),
        "transport": it.source.endpoint.transport(),
        "state": if well { "connected" } else { "error" },
        "era": it.standing.era.filter(|_| well).map(era),
        "protocol_version": it.standing.version.as_ref().filter(|_| well),
        "error": it.fault.as_deref().map(project::error),
        "tools": if well { tools } else { 0 },
        "initialization_time": it.standing.took.filter(|_| well).map(|it| it.as_secs_f64()),
    });
    if !it.unread.is_empty() {
        let unread = it.unread.iter();
        let unread =
            unread.map(|(list, fault)| json!({ "list": list.method(), "error": project::error(fault) }));
        shown["warnings"] = json!(unread.collect::<Vec<_>>());
    }
    shown
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}
