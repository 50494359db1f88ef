//! Finds overrides without effect, and suggests what they probably mean.

use super::Finding;
use serde_json::{Value, json};
use std::ptr;
use wharf_config::{ArgumentChange, Source, ToolOverride};
use wharf_runtime::{Catalog, catalog::ToolEntry, tokens::estimate_tool};

/// Similarity from which a name is probably meant.
const MIN_SIMILARITY: f64 = 0.8;

/// Finds overrides of tools and arguments that do not exist, and globs that apply to no tool.
pub(super) fn useless_overrides(catalog: &Catalog, source: &Source) -> Vec<Finding> {
    let name = source.name.expose();
    let listed = catalog.listed_names(name);
    let mut found = Vec::new();
    for (wire_name, changes) in &source.overrides.exact {
        if !listed.contains(&wire_name.as_str()) {
            let suggestion = nearest(wire_name, listed.iter().copied()).map(|it| rename(it, changes));
            let finding = useless(name, wire_name, "there is no such tool", &changes.at.to_string());
            found.push(Finding { suggestion, ..finding });
        } else if let Some(entry) = catalog.tool(&format!("{name}:{wire_name}")).filter(|_| changes.enabled) {
            found.extend(unknown_arguments(entry, changes));
        }
    }
    for (glob, changes) in &source.overrides.globs {
        let applies = |it: &str| source.overrides.find(it).is_some_and(|it| ptr::eq(it, changes));
        let why = match listed.iter().any(|it| glob.matches(it)) {
            _ if listed.iter().any(|it| applies(it)) => continue,
            true => "other overrides apply to all tools that it matches",
            false => "it matches no tool",
        };
        found.push(useless(name, glob.as_str(), why, &changes.at.to_string()));
    }
    found
}

fn useless(source: &str, name: &str, why: &str, at: &str) -> Finding {
    let message = format!("{at}: the override has no effect: {why}");
    Finding { code: "D-09", tool_id: format!("{source}:{name}"), message, tokens: None, suggestion: None }
}

fn unknown_arguments(entry: &ToolEntry, changes: &ToolOverride) -> Vec<Finding> {
    let schema: Value =
        entry.listed.member("inputSchema").map(|it| it.decode_or_default()).unwrap_or_default();
    let known = || schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let unknown = changes.arguments.iter().filter(|(argument, it)| {
        !known().any(|name| name == argument.as_str()) && !matches!(it.change, ArgumentChange::Fixed(_))
    });
    let finding = |(argument, it): (&String, &wharf_config::ArgumentOverride)| {
        let meant = nearest(argument, known());
        let wire_name: &str = &entry.wire_name;
        let suggestion = meant.map(|it| json!({ wire_name: { "arguments": { it: "CHANGES" } } }).to_string());
        let why = format!("there is no argument '{argument}'");
        let tokens = Some(estimate_tool(entry));
        Finding { tokens, suggestion, ..useless(&entry.source, wire_name, &why, &it.at.to_string()) }
    };
    unknown.map(finding).collect()
}

/// Writes the override under another name.
fn rename(name: &str, changes: &ToolOverride) -> String {
    match changes.enabled {
        true => json!({ name: "CHANGES" }).to_string(),
        false => json!({ name: { "enabled": false } }).to_string(),
    }
}

fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let similar = names.map(|it| (strsim::jaro_winkler(wanted, it), it));
    let near = similar.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY);
    near.max_by(|one, two| one.0.total_cmp(&two.0)).map(|(_, it)| it)
}
