//! `wharf tools`, `prompts` and `resources`: what the servers offer.

use crate::{
    content::{printable, value},
    dock::{Dock, Docked, hang_up},
    exit::Exit,
    output::Output,
};
use serde_json::{Value, json};
use wharf_mcp::{
    model::Item,
    session::{Era, List},
};
use wharf_runtime::{
    Fault,
    catalog::{self, Offer, ToolEntry},
    config::Source,
};

/// The longest description on a line.
const LINE: usize = 100;

pub(super) async fn tools(dock: Dock, name: Option<String>) -> Exit {
    list(dock, name, &[List::Tools], "tools", |docked| {
        let entries = catalog::tools(offers(docked));
        let rows = entries.iter().map(|it| Row {
            source: it.source.clone(),
            name: it.name.clone(),
            about: match &it.quarantined {
                Some(why) => format!("(quarantined: {why})"),
                None => it.description.clone().unwrap_or_default(),
            },
            json: tool_json(it),
        });
        rows.collect()
    })
    .await
}

pub(super) async fn prompts(dock: Dock, name: Option<String>) -> Exit {
    list(dock, name, &[List::Prompts], "prompts", |docked| {
        let mut rows = Vec::new();
        for (source, offer) in offers(docked) {
            rows.extend(
                offer
                    .prompts
                    .iter()
                    .map(|it| row(source, it, |it| (&it.name, it.description.as_deref(), &it.raw))),
            );
        }
        rows
    })
    .await
}

pub(super) async fn resources(dock: Dock, name: Option<String>) -> Exit {
    list(dock, name, &[List::Resources, List::Templates], "resources", |docked| {
        let mut rows = Vec::new();
        for (source, offer) in offers(docked) {
            rows.extend(
                offer
                    .resources
                    .iter()
                    .map(|it| row(source, it, |it| (&it.uri, it.description.as_deref(), &it.raw))),
            );
            let templates = offer.templates.iter();
            rows.extend(
                templates
                    .map(|it| row(source, it, |it| (&it.uri_template, it.description.as_deref(), &it.raw))),
            );
        }
        rows
    })
    .await
}

/// One thing that is offered.
struct Row {
    source: String,
    name: String,
    about: String,
    json: Value,
}

fn row<T>(
    source: &Source,
    item: &Item<T>,
    parts: impl Fn(&T) -> (&str, Option<&str>, &wharf_mcp::Raw),
) -> Row {
    let source = source.name.shown().to_owned();
    let (name, about, raw) = match item {
        Item::Good(it) => {
            let (name, about, raw) = parts(it);
            (name.to_owned(), about.unwrap_or_default().to_owned(), raw)
        }
        Item::Odd(raw, why) => ("(unreadable)".to_owned(), why.clone(), raw),
    };
    let mut json = value(raw);
    if let Some(object) = json.as_object_mut() {
        object.insert("source".to_owned(), json!(source));
    }
    Row { source, name, about, json }
}

async fn list(
    dock: Dock,
    name: Option<String>,
    lists: &'static [List],
    what: &'static str,
    rows: impl Fn(&[Docked]) -> Vec<Row>,
) -> Exit {
    if let Some(complaint) = name.as_deref().and_then(|name| unknown(&dock, name)) {
        dock.output.complain(&complaint);
        return Exit::Usage;
    }
    let docked = dock.connect(|it| name.as_deref().is_none_or(|name| it.name.expose() == name), lists).await;
    let rows = rows(&docked);
    let output = dock.output;
    if output.json {
        let sources: Vec<Value> = docked.iter().map(source_json).collect();
        let items: Vec<Value> = rows.into_iter().map(|it| it.json).collect();
        output.json(&json!({ what: items, "sources": sources }));
    } else {
        output.data(&to_text(&rows, &docked));
    }
    let exit = verdict(&docked, output);
    hang_up(docked).await;
    exit
}

/// Says what failed, and whether that is fatal: only if nothing answered, or something that is required did not.
fn verdict(docked: &[Docked], output: Output) -> Exit {
    let failed: Vec<(&Source, &Fault)> =
        docked.iter().filter_map(|it| Some((it.upstream.source(), it.state.as_ref().err()?))).collect();
    for (_, fault) in &failed {
        output.complain(&fault_text(fault));
    }
    let hopeless = !failed.is_empty() && failed.len() == docked.len();
    let fatal = hopeless || failed.iter().any(|(source, _)| source.required);
    if fatal { Exit::Unavailable } else { Exit::Fine }
}

fn to_text(rows: &[Row], docked: &[Docked]) -> String {
    let mut out = String::new();
    for source in docked.iter().filter(|it| it.state.is_ok()).map(|it| it.upstream.source().name.shown()) {
        let own: Vec<&Row> = rows.iter().filter(|it| it.source == source).collect();
        let width = own.iter().map(|it| it.name.chars().count()).max().unwrap_or_default().min(64);
        out.push_str(&format!("{source} ({})\n", own.len()));
        for Row { name, about, .. } in own {
            let about = printable(about.lines().find(|it| !it.trim().is_empty()).unwrap_or_default().trim());
            let short: String = about.chars().take(LINE).collect();
            let ellipsis = if short.len() < about.len() { "…" } else { "" };
            out.push_str(format!("  {:<width$}  {short}{ellipsis}", printable(name)).trim_end());
            out.push('\n');
        }
    }
    out
}

/// A fault for a person: what, the server's last words, what to do.
pub(super) fn fault_text(fault: &Fault) -> String {
    let mut out = format!("error: {fault}\n");
    for line in fault.stderr.lines() {
        out.push_str(&format!("  | {}\n", printable(line)));
    }
    if let Some(hint) = &fault.hint {
        out.push_str(&format!("help: {hint}\n"));
    }
    out
}

pub(super) fn fault_json(fault: &Fault) -> Value {
    json!({ "type": fault.kind.as_str(), "message": fault.message(), "hint": fault.hint, "stderr": fault.stderr })
}

pub(super) fn offers(docked: &[Docked]) -> impl Iterator<Item = (&Source, &Offer)> {
    docked.iter().filter_map(|it| Some((it.upstream.source(), &it.state.as_ref().ok()?.1)))
}

pub(super) fn unknown(dock: &Dock, name: &str) -> Option<String> {
    let names: Vec<&str> = dock.sources().iter().map(|it| it.name.expose()).collect();
    (!names.contains(&name)).then(|| {
        let shown: Vec<&str> = dock.sources().iter().map(|it| it.name.shown()).collect();
        format!("error: there is no server '{name}'\nhelp: the agent file has {}\n", shown.join(", "))
    })
}

fn tool_json(entry: &ToolEntry) -> Value {
    let tool = entry.tool.as_ref();
    json!({
        "name": entry.name,
        "wire_name": entry.wire_name,
        "source": entry.source,
        "description": entry.description,
        "input_schema": tool.map(|it| value(&it.input_schema)),
        "output_schema": tool.and_then(|it| it.output_schema.as_ref()).map(value),
        "annotations": tool.and_then(|it| it.annotations.as_ref()).map(value),
        "definition_hash": entry.definition_hash,
        "quarantined": entry.quarantined,
    })
}

pub(super) fn source_json(docked: &Docked) -> Value {
    let source = docked.upstream.source();
    let live = docked.state.as_ref().ok();
    json!({
        "name": source.name.shown(),
        "transport": source.endpoint.transport(),
        "state": if live.is_some() { "connected" } else { "error" },
        "era": live.map(|(live, _)| era(live.session.terms().era)),
        "protocol_version": live.map(|(live, _)| live.session.terms().version.to_string()),
        "error": docked.state.as_ref().err().map(fault_json),
        "tools": live.map_or(0, |(_, offer)| offer.tools.len()),
        "initialization_time": live.map(|(live, _)| live.took.as_secs_f64()),
    })
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}
