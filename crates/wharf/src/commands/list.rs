//! `wharf tools`, `prompts` and `resources`: what the servers offer.

use crate::{
    content::{printable, value},
    dock::{Dock, Docked, DockedSource},
    exit::Exit,
    output::Output,
    remembered::Remembered,
};
use serde_json::{Value, json};
use wharf_mcp::{
    Raw,
    session::{Era, List},
};
use wharf_runtime::{
    Fault,
    catalog::{PromptEntry, Sourced},
    project,
};

/// The longest description on a line.
const LINE: usize = 100;

pub(super) async fn tools(dock: Dock, name: Option<String>, remembered: Option<Remembered>) -> Exit {
    let remembered = remembered.filter(|_| name.is_none());
    list(dock, name, &[List::Tools], "tools", |docked| {
        if let Some(remembered) = &remembered {
            let tools: Vec<Value> = docked.catalog.tools.iter().map(|it| project::tool(it)).collect();
            let sources: Vec<Value> = docked.sources.iter().map(|it| source_json(it, docked)).collect();
            if let Err(error) = remembered.keep(&tools, &sources) {
                tracing::warn!(target: "wharf", "the list of tools could not be kept for `--cached`: {error}");
            }
        }
        let rows = docked.catalog.tools.iter().map(|it| Row {
            source: it.source.clone(),
            name: it.name.clone(),
            about: match &it.quarantined {
                Some(why) => format!("(quarantined: {why})"),
                None => it.description.clone().unwrap_or_default(),
            },
            json: project::tool(it),
        });
        rows.collect()
    })
    .await
}

/// The tools of the last time; nothing is started for it.
pub(super) fn cached(remembered: &Option<Remembered>, name: Option<&str>, output: Output) -> Exit {
    let recalled = remembered.as_ref().ok_or_else(|| "there is no place to keep it".to_owned());
    let mut list = match recalled.and_then(Remembered::recall) {
        Ok(list) => list,
        Err(why) => {
            output.complain(&format!(
                "error: no list of tools is kept for this agent file: {why}\nhelp: `wharf tools` makes one\n"
            ));
            return Exit::Unavailable;
        }
    };
    for (key, field) in [("tools", "source"), ("sources", "name")] {
        if let Some(items) = list[key].as_array_mut() {
            items.retain(|it| name.is_none_or(|name| it[field] == name));
        }
    }
    if output.json {
        output.json(&list);
    } else {
        output.data(&cached_text(&list));
    }
    Exit::Fine
}

fn cached_text(list: &Value) -> String {
    let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let rows: Vec<Row> = list["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| Row {
            source: word(&it["source"]),
            name: word(&it["name"]),
            about: match it["quarantined"].as_str() {
                Some(why) => format!("(quarantined: {why})"),
                None => word(&it["description"]),
            },
            json: Value::Null,
        })
        .collect();
    let mut sources: Vec<&str> = rows.iter().map(|it| it.source.as_str()).collect();
    sources.dedup();
    sources.iter().map(|it| section(it, it, &rows)).collect()
}

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

/// One thing that is offered.
struct Row {
    source: String,
    name: String,
    about: String,
    json: Value,
}

fn row(source: &str, name: &str, about: Option<&str>, raw: &Raw) -> Row {
    let mut json = value(raw);
    if let Some(object) = json.as_object_mut() {
        object.insert("source".to_owned(), json!(source));
    }
    let (source, name, about) = (source.to_owned(), name.to_owned(), about.unwrap_or_default().to_owned());
    Row { source, name, about, json }
}

/// What servers list and nobody can read.
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
    if let Some(complaint) = name.as_deref().and_then(|name| unknown(&dock, name)) {
        dock.output.complain(&complaint);
        return Exit::Usage;
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

/// Says what failed, and whether that is fatal: only if nothing answered, or something that is required did not.
fn verdict(docked: &Docked, output: Output) -> Exit {
    docked.faults().for_each(|it| output.complain(&fault_text(it)));
    let failed = docked.faults().count();
    let hopeless = failed > 0 && failed == docked.sources.len();
    let fatal = hopeless || docked.sources.iter().any(|it| it.source.required && !it.is_well());
    if fatal { Exit::Unavailable } else { Exit::Fine }
}

fn to_text(rows: &[Row], docked: &Docked) -> String {
    let well = docked.sources.iter().filter(|it| it.is_well());
    well.map(|it| section(it.source.name.expose(), it.source.name.shown(), rows)).collect()
}

/// What one source offers, under its name.
fn section(source: &str, shown: &str, rows: &[Row]) -> String {
    let own: Vec<&Row> = rows.iter().filter(|it| it.source == source).collect();
    let width = own.iter().map(|it| it.name.chars().count()).max().unwrap_or_default().min(64);
    let mut out = format!("{shown} ({})\n", own.len());
    for Row { name, about, .. } in own {
        let about = printable(about.lines().find(|it| !it.trim().is_empty()).unwrap_or_default().trim());
        let short: String = about.chars().take(LINE).collect();
        let ellipsis = if short.len() < about.len() { "…" } else { "" };
        out.push_str(format!("  {:<width$}  {short}{ellipsis}", printable(name)).trim_end());
        out.push('\n');
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

pub(super) fn unknown(dock: &Dock, name: &str) -> Option<String> {
    let names: Vec<&str> = dock.sources().iter().map(|it| it.name.expose()).collect();
    (!names.contains(&name)).then(|| {
        let shown: Vec<&str> = dock.sources().iter().map(|it| it.name.shown()).collect();
        format!("error: there is no server '{name}'\nhelp: the agent file has {}\n", shown.join(", "))
    })
}

pub(super) fn source_json(it: &DockedSource, docked: &Docked) -> Value {
    let well = it.is_well();
    let tools = docked.catalog.tools.iter().filter(|tool| it.has(&tool.source)).count();
    json!({
        "name": it.source.name.shown(),
        "transport": it.source.endpoint.transport(),
        "state": if well { "connected" } else { "error" },
        "era": it.standing.era.filter(|_| well).map(era),
        "protocol_version": it.standing.version.as_ref().filter(|_| well),
        "error": it.fault.as_deref().map(project::error),
        "tools": if well { tools } else { 0 },
        "initialization_time": it.standing.took.filter(|_| well).map(|it| it.as_secs_f64()),
    })
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}
