//! Writes the entry that a manifest suggests as lines of an agent file.

use super::yaml::YamlEntry;
use serde_json::Value;
use wharf_config::Suggestion;

/// Returns the lines of the entry, as a list item indented by two spaces.
pub(crate) fn render_suggestion(suggestion: &Suggestion) -> String {
    entry(suggestion).render()
}

/// Returns the entry as JSON.
pub(crate) fn suggestion_json(suggestion: &Suggestion) -> Value {
    entry(suggestion).to_json()
}

fn entry(suggestion: &Suggestion) -> YamlEntry {
    let Suggestion { name, description, server, command, env, remote, headers, .. } = suggestion;
    let mut entry = YamlEntry::default();
    entry.text("name", name);
    let described = description.as_ref().map_or_else(|| format!("MCP server '{name}'"), Clone::clone);
    // Escape `${`: a description must not be expanded as a variable.
    entry.text("description", described.replace("${", "$${"));
    entry.text("type", "mcp");
    entry.text("server", server);
    if let Some((command, args)) = command {
        entry.text("command", command);
        entry.texts("args", args.clone());
    }
    if let Some((transport, url)) = remote {
        entry.text("transport", *transport);
        entry.text("url", url);
    }
    entry.map("env", env.clone());
    entry.map("headers", headers.clone());
    entry
}
