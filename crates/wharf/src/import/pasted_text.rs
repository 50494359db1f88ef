//! Recognizes pasted text: a manifest, a client's file, its list of servers, or one server from it.

use super::{
    ClientFile, jsonc,
    package::{Package, to_server_name},
};
use serde_json::{Map, Value, json};
use std::path::Path;
use url::Url;

/// Pasted text.
pub(crate) enum PastedText {
    /// Probably a server.json or plugin.json.
    Manifest(Vec<u8>),
    /// Servers in a client's format.
    Servers(ClientFile),
}

impl PastedText {
    /// Reads text that comes from `shown`. `name` renames a single server.
    pub(crate) fn read(text: String, shown: &str, name: Option<&str>) -> PastedText {
        // Documentation pages often show a member of `mcpServers` without the enclosing braces.
        let text = if text.trim_start().starts_with('"') { format!("{{{text}}}") } else { text };
        match jsonc::parse(&text).ok().and_then(|it| to_client_file(it, name)) {
            None => PastedText::Manifest(text.into_bytes()),
            Some(root) => {
                let path = Path::new(shown).to_owned();
                PastedText::Servers(ClientFile { text: root.to_string(), path, client: None })
            }
        }
    }
}

/// Converts a client's file, list of servers or single server into a client's file. `None` if it is something else.
fn to_client_file(found: Value, name: Option<&str>) -> Option<Value> {
    let Value::Object(root) = found else { return None };
    let sections = ["mcpServers", "servers", "context_servers", "mcp_servers", "mcp", "projects"];
    if sections.iter().any(|it| root.get(*it).is_some_and(Value::is_object)) {
        return Some(rename_single_server(root, name));
    }
    if is_server(&root) {
        let name = name.map_or_else(|| name_of_server(&root), str::to_owned);
        return Some(json!({ "mcpServers": { name: root } }));
    }
    let are_servers = !root.is_empty() && root.values().all(|it| it.as_object().is_some_and(is_server));
    are_servers
        .then(|| rename_single_server(Map::from_iter([("mcpServers".to_owned(), Value::Object(root))]), name))
}

/// Renames the server if the file contains only one.
fn rename_single_server(mut root: Map<String, Value>, name: Option<&str>) -> Value {
    for section in ["mcpServers", "servers", "context_servers"] {
        let Some(Value::Object(servers)) = root.get_mut(section) else { continue };
        if let (Some(name), 1) = (name, servers.len()) {
            *servers = servers.values().map(|it| (name.to_owned(), it.clone())).collect();
        }
    }
    Value::Object(root)
}

fn is_server(object: &Map<String, Value>) -> bool {
    let is_text = |key: &str| object.get(key).is_some_and(Value::is_string);
    is_text("command") || is_text("url") || is_text("serverUrl") || is_text("httpUrl")
}

/// Derives a name for an unnamed server from its package or its host.
fn name_of_server(server: &Map<String, Value>) -> String {
    let text = |key: &str| server.get(key).and_then(Value::as_str);
    if let Some(url) = text("url").or_else(|| text("serverUrl")).or_else(|| text("httpUrl")) {
        return name_of_address(url);
    }
    let args = server.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let package = args.filter(|it| !it.starts_with('-')).find_map(|it| match Package::read(it) {
        Ok(Some(package)) => Some(package.server_name()),
        _ => None,
    });
    package.unwrap_or_else(|| {
        to_server_name(text("command").unwrap_or("server").rsplit(['/', '\\']).next().unwrap_or_default())
    })
}

/// Derives a server name from a URL: `https://mcp.linear.app/mcp` becomes `linear`.
pub(crate) fn name_of_address(address: &str) -> String {
    let host = Url::parse(address).ok().and_then(|it| it.host_str().map(str::to_owned)).unwrap_or_default();
    let is_number = host.starts_with('[') || host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let labels: Vec<&str> = host.split('.').collect();
    let is_specific = |it: &&&str| !matches!(**it, "mcp" | "api" | "www" | "server");
    let known = labels.iter().take(labels.len().saturating_sub(1).max(1)).find(is_specific);
    to_server_name(if is_number { &host } else { known.copied().unwrap_or(&host) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_name_is_derived_from_the_url() {
        for (address, name) in [
            ("https://mcp.linear.app/mcp", "linear"),
            ("https://api.githubcopilot.com/mcp/", "githubcopilot"),
            ("https://example.com", "example"),
            ("http://localhost:3000/sse", "localhost"),
            ("http://127.0.0.1:9/mcp", "127-0-0-1"),
            ("https://mcp.example", "mcp-example"),
            ("https://", "server"),
        ] {
            assert_eq!(name_of_address(address), name, "{address}");
        }
    }

    #[test]
    fn client_json_is_distinguished_from_manifests() {
        let npx = json!({"command": "npx", "args": ["-y", "@playwright/mcp"]});
        for (found, name, expected) in [
            (json!({"mcpServers": {"a": npx}}), None, Some(json!({"mcpServers": {"a": npx}}))),
            (json!({"mcpServers": {"a": npx}}), Some("b"), Some(json!({"mcpServers": {"b": npx}}))),
            (json!({"servers": {"a": npx}}), None, Some(json!({"servers": {"a": npx}}))),
            (json!({"a": npx}), None, Some(json!({"mcpServers": {"a": npx}}))),
            (npx.clone(), None, Some(json!({"mcpServers": {"playwright": npx}}))),
            (npx.clone(), Some("b"), Some(json!({"mcpServers": {"b": npx}}))),
            (
                json!({"url": "https://mcp.linear.app/mcp"}),
                None,
                Some(json!({"mcpServers": {"linear": {"url": "https://mcp.linear.app/mcp"}}})),
            ),
            (json!({"name": "x", "packages": []}), None, None),
            (json!({}), None, None),
            (json!([]), None, None),
        ] {
            assert_eq!(to_client_file(found.clone(), name), expected, "{found}");
        }
    }
}
