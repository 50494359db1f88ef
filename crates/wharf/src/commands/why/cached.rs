//! `wharf why --cached`: explains a tool from the agent file and the tool list of the last run, without starting a server.

use crate::{command_error::CommandError, exit::Exit, tool_cache::ToolCache};
use serde_json::Value;
use wharf_config::{Plan, Source};
use wharf_runtime::why::{Audience, ToolExplanation, ToolLayer};

/// Explains a tool.
pub(super) fn explain(
    plan: &Plan,
    tool_cache: Option<&ToolCache>,
    name: &str,
    audience: Audience,
) -> Result<ToolExplanation, CommandError> {
    let list = tool_cache.ok_or_else(|| "there is no state folder".to_owned()).and_then(ToolCache::load);
    let list = list.map_err(|why| {
        let complaint = format!(
            "there is no cached tool list for this agent file: {why}\nhelp: `wharf tools` creates one"
        );
        CommandError::new("MCPError", &complaint, Exit::Unavailable)
    })?;
    let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    let id = |it: &Value| format!("{}:{}", text(it, "source"), text(it, "wire_name"));
    let tools: Vec<&Value> = list["tools"].as_array().into_iter().flatten().collect();
    let mut bare = tools.iter().filter(|it| it["wire_name"] == name);
    let only = bare.next().filter(|_| bare.next().is_none());
    let found = tools.iter().find(|it| text(it, "name") == name || id(it) == name).or(only);
    let source = match found {
        Some(found) => plan.sources.iter().find(|it| found["source"] == *it.name.expose()),
        None => plan.sources.iter().find(|it| is_of_source(it, name)),
    };
    let mut layers = vec![config(source)];
    if let Some(source) = source {
        layers.push(listing(found.copied(), &text(&list, "at")));
        let wire_name = found.map(|it| text(it, "wire_name")).unwrap_or_default();
        if found.is_some() {
            layers.push(hidden(source, &wire_name));
            layers.push(offer(source, &wire_name, audience));
        }
    }
    let is_unknown = source.is_none() || found.is_none();
    let tool_id = found.map_or_else(|| name.to_owned(), |it| id(it));
    Ok(ToolExplanation { tool_id, is_unknown, layers, similar: Vec::new(), recent: None })
}

/// Returns whether the name begins with the name or the prefix of a source.
fn is_of_source(source: &Source, name: &str) -> bool {
    let begins = |start: &str, separator: &str| {
        !start.is_empty() && name.strip_prefix(start).is_some_and(|it| it.starts_with(separator))
    };
    begins(source.name.expose(), ":") || begins(source.prefix.expose(), "__")
}

fn layer(name: &'static str, code: Option<&'static str>, detail: impl Into<String>) -> ToolLayer {
    ToolLayer { name, is_ok: code.is_none(), code, detail: detail.into(), hint: None, at: None }
}

fn config(source: Option<&Source>) -> ToolLayer {
    match source {
        Some(source) => ToolLayer {
            at: Some(source.at.to_string()),
            ..layer("config", None, format!("the entry `{}`", source.name.shown()))
        },
        None => ToolLayer {
            hint: Some("`wharf tools` lists all tools".to_owned()),
            ..layer("config", Some("source_unknown"), "no server has this name or prefix")
        },
    }
}

fn listing(found: Option<&Value>, at: &str) -> ToolLayer {
    match found {
        Some(tool) if tool["quarantined"].is_string() => {
            let why = tool["quarantined"].as_str().unwrap_or_default();
            layer("quarantine", Some("schema"), why)
        }
        Some(_) => layer("listing", None, format!("the server listed the tool at {at}")),
        None => ToolLayer {
            hint: Some("`wharf tools` reads the lists again".to_owned()),
            ..layer("listing", Some("not_listed"), format!("the server did not list such a tool at {at}"))
        },
    }
}

fn hidden(source: &Source, wire_name: &str) -> ToolLayer {
    match source.overrides.find(wire_name) {
        Some(changes) if !changes.enabled => ToolLayer {
            at: Some(changes.at.to_string()),
            hint: Some("remove `enabled: false` from the override".to_owned()),
            ..layer("override", Some("hidden"), "an override hides the tool from everybody")
        },
        Some(_) => layer("override", None, "an override changes the tool"),
        None => layer("override", None, "no override"),
    }
}

fn offer(source: &Source, wire_name: &str, audience: Audience) -> ToolLayer {
    let denied = source.deny.iter().find(|it| it.matches(wire_name));
    let is_allowed = source.allow.is_empty() || source.allow.iter().any(|it| it.matches(wire_name));
    let rule = match denied {
        Some(glob) => format!("'{}' in `deny`", glob.as_str()),
        None if is_allowed => return layer("offer", None, "models may use the tool"),
        None => "`allow`, which does not name it,".to_owned(),
    };
    match audience {
        Audience::Client => {
            layer("offer", None, format!("{rule} keeps the tool from models; other clients may call it"))
        }
        Audience::Agent => ToolLayer {
            hint: Some("change `allow` or `deny` of the entry".to_owned()),
            ..layer("offer", Some("denied"), format!("{rule} keeps the tool from models"))
        },
    }
}
