//! `wharf tools`: lists the tools of all servers or of one server, or shows one tool in full.

mod cached;
mod view;

use super::{
    call::may_have,
    list::{Row, section, source_json, verdict},
};
use crate::{
    cli::ToolsArgs,
    command_error::CommandError,
    dock::{Dock, Docked, DockedSource},
    exit::Exit,
    output::Output,
    remembered::Remembered,
};
pub(super) use cached::cached;
use serde_json::{Value, json};
use view::ToolView;
pub(super) use view::first_line;
use wharf_config::{Source, closest};
use wharf_mcp::session::List;
use wharf_runtime::project;

pub(super) async fn run(dock: Dock, args: ToolsArgs, remembered: Option<Remembered>) -> Exit {
    let ToolsArgs { name, long, .. } = args;
    let (output, sources) = (dock.output, dock.sources());
    let is_server = name.as_deref().is_some_and(|name| sources.iter().any(|it| it.name.expose() == name));
    let is_wanted = |it: &Source| match name.as_deref() {
        None => true,
        Some(name) if is_server => it.name.expose() == name,
        Some(tool) => may_have(it, tool, sources),
    };
    let docked = dock.connect(is_wanted, &[List::Tools]).await;
    if let (Some(remembered), None) = (&remembered, &name) {
        remember(remembered, &docked);
    }
    let exit = match name.as_deref().filter(|_| !is_server) {
        Some(tool) => show_one(&docked, tool, sources, output),
        None => show_all(&docked, name.is_some() || long, long, output),
    };
    docked.leave().await;
    exit
}

/// Saves the list for `--cached`.
fn remember(remembered: &Remembered, docked: &Docked) {
    if let Err(error) = remembered.keep(&tools_json(docked), &sources_json(docked)) {
        tracing::warn!(target: "wharf", "the list of tools could not be kept for `--cached`: {error}");
    }
}

fn tools_json(docked: &Docked) -> Vec<Value> {
    docked.catalog.tools.iter().map(|it| project::tool(it)).collect()
}

fn sources_json(docked: &Docked) -> Vec<Value> {
    docked.sources.iter().map(|it| source_json(it, docked)).collect()
}

fn show_all(docked: &Docked, signatures: bool, long: bool, output: Output) -> Exit {
    let tools = tools_json(docked);
    if output.json {
        output.json(&json!({ "tools": tools, "sources": sources_json(docked) }));
    } else {
        let well = docked.sources.iter().filter(|it| it.is_well());
        let names = well.map(|it| (it.source.name.expose(), it.source.name.shown()));
        output.data(&sections(names, &tools, signatures, long));
    }
    verdict(docked, output)
}

/// Formats the tools of each server under its name: names with descriptions, or signatures.
fn sections<'a>(
    servers: impl Iterator<Item = (&'a str, &'a str)>,
    tools: &[Value],
    signatures: bool,
    long: bool,
) -> String {
    if signatures {
        let views: Vec<ToolView> = tools.iter().map(ToolView::of).collect();
        let section = |(name, shown): (&str, &str)| {
            let own: Vec<&ToolView> = views.iter().filter(|it| it.source() == name).collect();
            let entries: String = own.iter().map(|it| it.entry(long)).collect();
            format!("{shown} ({})\n{entries}", own.len())
        };
        return servers.map(section).collect();
    }
    let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let rows = tools.iter().map(|it| Row {
        source: word(&it["source"]),
        name: word(&it["name"]),
        about: match it["quarantined"].as_str() {
            Some(why) => format!("(quarantined: {why})"),
            None => word(&it["description"]),
        },
        json: Value::Null,
    });
    let rows: Vec<Row> = rows.collect();
    servers.map(|(name, shown)| section(name, shown, &rows)).collect()
}

fn show_one(docked: &Docked, name: &str, sources: &[Source], output: Output) -> Exit {
    let Some(tool) = docked.catalog.tool(name) else {
        return show_none(docked, name, sources, output);
    };
    let tool_json = project::tool(tool);
    if output.json {
        let own = docked.sources.iter().filter(|it| it.has(&tool.source));
        let sources: Vec<Value> = own.map(|it| source_json(it, docked)).collect();
        output.json(&json!({ "tools": [tool_json], "sources": sources }));
    } else {
        output.data(&ToolView::of(&tool_json).page());
    }
    Exit::Fine
}

/// Reports that no server or tool has this name. If no server could be reached, the exit code says so instead.
fn show_none(docked: &Docked, name: &str, sources: &[Source], output: Output) -> Exit {
    let is_hopeless = docked.faults().count() > 0 && !docked.sources.iter().any(DockedSource::is_well);
    let tools: Vec<(&str, &str)> =
        docked.catalog.tools.iter().map(|it| (it.name.as_str(), it.wire_name.as_str())).collect();
    let servers: Vec<&str> = sources.iter().map(|it| it.name.shown()).collect();
    let mut error = unknown(name, &servers, &tools);
    if is_hopeless {
        error.exit = Exit::Unavailable;
    }
    if output.json {
        let sources = sources_json(docked);
        return output.fail_with(&error, &[("sources", json!(sources))]);
    }
    docked.faults().for_each(|it| output.complain(&super::list::fault_text(it)));
    output.fail(&error)
}

/// Returns the exit code for an unknown name. A name that can only be a tool's is not found; any other may be a
/// mistyped server name.
fn not_found(name: &str) -> Exit {
    if name.contains(':') || name.contains("__") { Exit::NotFound } else { Exit::Usage }
}

fn unknown(name: &str, servers: &[&str], tools: &[(&str, &str)]) -> CommandError {
    let same: Vec<&str> = tools.iter().filter(|it| it.1 == name).map(|it| it.0).collect();
    let complaint = if same.is_empty() {
        let known = servers.iter().copied().chain(tools.iter().flat_map(|(shown, wire)| [*shown, *wire]));
        let hint = match closest(name, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the servers are {}; `wharf tools` lists all tools", servers.join(", ")),
        };
        format!("there is no server or tool '{name}'\nhelp: {hint}")
    } else {
        format!("several servers have a tool '{name}'\nhelp: say which: {}", same.join(", "))
    };
    CommandError::new("MCPToolNotFoundError", &complaint, not_found(name))
}
