//! `wharf tools`: lists the tools of all servers or of one server, or shows one tool in full.

mod cached;
mod token_table;
mod view;

use super::{
    call::can_have_tool,
    list::{Row, report_failures, section, source_json},
};
use crate::{
    app::{App, ConnectedSource, Connections},
    cli::ToolsArgs,
    command_error::CommandError,
    exit::Exit,
    output::Output,
    tool_cache::{CHECKS_KEY, ToolCache},
};
pub(super) use cached::cached;
use serde_json::{Value, json};
use token_table::{add_tokens, token_table};
use view::ToolView;
pub(super) use view::first_line;
use wharf_config::{Source, closest};
use wharf_mcp::session::List;
use wharf_runtime::{lock::locked_item, views};

pub(super) async fn run(app: App, args: ToolsArgs, tool_cache: Option<ToolCache>) -> Exit {
    let ToolsArgs { name, long, tokens, .. } = args;
    let (output, sources) = (app.output, &app.plan.sources);
    let is_server = name.as_deref().is_some_and(|name| sources.iter().any(|it| it.name.expose() == name));
    let is_wanted = |it: &Source| match name.as_deref() {
        None => true,
        Some(name) if is_server => it.name.expose() == name,
        Some(tool) => can_have_tool(it, tool, sources),
    };
    let connections = app.connect(is_wanted, &[List::Tools]).await;
    if let (Some(tool_cache), None) = (&tool_cache, &name) {
        save_list(tool_cache, &connections);
    }
    let exit = match name.as_deref().filter(|_| !is_server) {
        Some(tool) => show_one(&connections, tool, sources, tokens, output),
        None if tokens => show_tokens(&connections, output),
        None => show_all(&connections, name.is_some() || long, long, output),
    };
    connections.close().await;
    exit
}

/// Saves the list for `--cached`.
fn save_list(tool_cache: &ToolCache, connections: &Connections) {
    let tools = connections.catalog.tools.iter().map(|it| {
        let mut tool = views::tool(it);
        let cause = it.quarantined.as_ref().map(|it| it.cause.as_str());
        tool[CHECKS_KEY] = json!({ "hash": locked_item(&it.listed).hash, "quarantine": cause });
        tool
    });
    let tools: Vec<Value> = tools.collect();
    if let Err(error) = tool_cache.store(&tools, &sources_json(connections)) {
        tracing::warn!(target: "wharf", "cannot save the tool list for `--cached`: {error}");
    }
}

fn tools_json(connections: &Connections) -> Vec<Value> {
    connections.catalog.tools.iter().map(|it| views::tool(it)).collect()
}

fn sources_json(connections: &Connections) -> Vec<Value> {
    connections.sources.iter().map(|it| source_json(it, &connections.catalog)).collect()
}

fn show_all(connections: &Connections, signatures: bool, long: bool, output: Output) -> Exit {
    let tools = tools_json(connections);
    if output.json {
        output.json(&json!({ "tools": tools, "sources": sources_json(connections) }));
    } else {
        let well = connections.sources.iter().filter(|it| it.is_connected());
        let names = well.map(|it| (it.source.name.expose(), it.source.name.shown()));
        output.data(&sections(names, &tools, signatures, long));
    }
    report_failures(connections, output)
}

fn show_tokens(connections: &Connections, output: Output) -> Exit {
    let mut tools = tools_json(connections);
    if output.json {
        let total = add_tokens(&mut tools);
        output.json(&json!({ "tools": tools, "sources": sources_json(connections), "tokens": total }));
    } else {
        let well = connections.sources.iter().filter(|it| it.is_connected());
        let names = well.map(|it| (it.source.name.expose(), it.source.name.shown()));
        output.data(&token_table(names, &tools));
    }
    report_failures(connections, output)
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

fn show_one(connections: &Connections, name: &str, sources: &[Source], tokens: bool, output: Output) -> Exit {
    let Some(tool) = connections.catalog.tool(name) else {
        return report_unknown(connections, name, sources, output);
    };
    let mut tool_json = views::tool(tool);
    if tokens {
        add_tokens(std::slice::from_mut(&mut tool_json));
    }
    if output.json {
        let own = connections.sources.iter().filter(|it| it.is_named(&tool.source));
        let sources: Vec<Value> = own.map(|it| source_json(it, &connections.catalog)).collect();
        output.json(&json!({ "tools": [tool_json], "sources": sources }));
    } else if tokens {
        let server = (tool.source.as_str(), tool.config().name.shown());
        output.data(&token_table([server].into_iter(), &[tool_json]));
    } else {
        output.data(&ToolView::of(&tool_json).page());
    }
    Exit::Success
}

/// Reports that no server or tool has this name. If no server could be reached, the exit code says so instead.
fn report_unknown(connections: &Connections, name: &str, sources: &[Source], output: Output) -> Exit {
    let all_failed =
        connections.faults().count() > 0 && !connections.sources.iter().any(ConnectedSource::is_connected);
    let tools: Vec<(&str, &str)> =
        connections.catalog.tools.iter().map(|it| (it.name.as_str(), &*it.wire_name)).collect();
    let servers: Vec<&str> = sources.iter().map(|it| it.name.shown()).collect();
    let mut error = unknown_name(name, &servers, &tools);
    if all_failed {
        error.exit = Exit::Unavailable;
    }
    if output.json {
        let sources = sources_json(connections);
        return output.fail_with(&error, &[("sources", json!(sources))]);
    }
    connections.faults().for_each(|it| output.print_error(&super::list::fault_text(it)));
    output.fail(&error)
}

/// Returns the exit code for an unknown name. A name that can only be a tool's is not found; any other may be a
/// mistyped server name.
fn not_found(name: &str) -> Exit {
    if name.contains(':') || name.contains("__") { Exit::NotFound } else { Exit::Usage }
}

fn unknown_name(name: &str, servers: &[&str], tools: &[(&str, &str)]) -> CommandError {
    let same: Vec<&str> = tools.iter().filter(|it| it.1 == name).map(|it| it.0).collect();
    let complaint = if same.is_empty() {
        let known = servers.iter().copied().chain(tools.iter().flat_map(|(shown, wire)| [*shown, *wire]));
        let hint = match closest(name, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the servers are {}; `wharf tools` lists all tools", servers.join(", ")),
        };
        format!("there is no server or tool '{name}'\nhelp: {hint}")
    } else {
        format!("several servers have a tool '{name}'\nhelp: choose one: {}", same.join(", "))
    };
    CommandError::new("MCPToolNotFoundError", &complaint, not_found(name))
}
