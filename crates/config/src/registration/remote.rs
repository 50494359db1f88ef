//! Translates a remote server from the tools provider's vocabulary into an entry of `tools:`.

use super::entry::EntryBuilder;
use crate::{
    diagnostic::Diagnostics,
    node::{Node, Str, Value},
    place::{Place, Placed, PlacedString},
    plan::Lifecycle,
    raw::{Field, RawRegistration},
    read::{Reader, StringPairs},
};

const CLASS: &str = "MCPConfigError";

/// Default path, for a URL without one.
const DEFAULT_PATH: &str = "/mcp";

pub(super) fn entry(raw: RawRegistration, diagnostics: &mut Diagnostics) -> Option<Node> {
    #[rustfmt::skip]
    let RawRegistration {
        name, description, url, source_type, plugin_dir: _, transport_type, runtime_hint, lifecycle_mode, env_vars, command,
        args, server_url, call_vars,
    } = raw;
    let here = name.as_ref().or(url.as_ref()).map_or(Place::default(), |it| it.key_at);
    let mut reader = Reader { class: CLASS, diagnostics };
    super::check_source_type(source_type, &mut reader);
    let of_plugins = [
        ("mcp_runtime_hint", runtime_hint),
        ("mcp_command", command),
        ("mcp_args", args),
        ("mcp_call_vars", call_vars),
    ];
    for (key, field) in of_plugins {
        if let Some(field) = field {
            reader.diagnostics.unused_by_remote(field.key_at, key);
        }
    }
    let transport = reader.text("mcp_transport_type", transport_type);
    if let Some(other) = transport.filter(|it| it.value.expose() != "streamable_http") {
        reader.diagnostics.unsupported_remote_transport(other.at, other.value.shown());
    }
    let lifecycle =
        reader.keyword("mcp_lifecycle_mode", lifecycle_mode, Lifecycle::KEYWORDS, Lifecycle::parse);
    let headers = reader.text_map("mcp_env_vars", env_vars).unwrap_or_default();
    let url = address(server_url, url, here, &mut reader)?;

    let mut entry = EntryBuilder::new(here);
    if let Some(name) = name {
        entry.put_node("server", name.key_at, name.node.clone());
        entry.put_node("name", name.key_at, name.node);
    }
    entry.describe(description, here);
    entry.put("transport", url.at, Value::plain("http"));
    entry.put("url", url.at, Value::Str(Str { text: url.value, is_variable: false }));
    let lifecycle = lifecycle.unwrap_or(Lifecycle::Singleton);
    entry.put("lifecycle", here, Value::plain(lifecycle.as_str()));
    entry.put_map("headers", here, named_headers(headers, reader.diagnostics));
    Some(entry.finish())
}

impl EntryBuilder {
    /// Adds the description, or a generated one. A registration needs no description, so a missing one is not worth a
    /// warning.
    pub(super) fn describe(&mut self, description: Option<Field>, at: Place) {
        match description {
            Some(field) => self.put_node("description", field.key_at, field.node),
            None => self.put("description", at, Value::plain("A registered MCP server")),
        }
    }
}

/// Returns the URL of the server: `mcp_server_url`, or `url` if that is a web address.
fn address(
    server_url: Option<Field>,
    url: Option<Field>,
    here: Place,
    reader: &mut Reader<'_>,
) -> Option<PlacedString> {
    let written = server_url.is_some();
    let url = reader.text("url", url);
    let found = match reader.text("mcp_server_url", server_url) {
        None if !written => url.filter(|it| is_http_url(it.value.expose())),
        found => found,
    };
    if found.is_none() && !written {
        reader.diagnostics.plugin_or_remote(here, false);
    }
    found.map(|it| Placed::new(it.value.map(with_path), it.at))
}

fn is_http_url(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    ["http", "https"].iter().any(|it| it.eq_ignore_ascii_case(scheme))
}

/// Appends the default path to a URL that has none.
fn with_path(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    match rest.find(['/', '?', '#']) {
        // Keep a URL without a host as written, so that the error is about the host.
        Some(0) => url.to_owned(),
        None if !rest.is_empty() => format!("{url}{DEFAULT_PATH}"),
        Some(at) if &rest[at..] == "/" => format!("{}{DEFAULT_PATH}", url.trim_end_matches('/')),
        _ => url.to_owned(),
    }
}

/// Converts the variables of a remote server to headers.
fn named_headers(variables: StringPairs, diagnostics: &mut Diagnostics) -> Vec<(Placed<String>, Node)> {
    let mut headers = Vec::new();
    for (name, value) in variables {
        let header = match name.value.as_str() {
            "API_KEY" => "X-API-Key".to_owned(),
            other if other.eq_ignore_ascii_case("authorization") => "Authorization".to_owned(),
            other => match other.strip_prefix("MCP_HEADER_") {
                Some(header) => header.replace('_', "-"),
                None => {
                    diagnostics.variable_is_not_a_header(name.at, &name.value);
                    continue;
                }
            },
        };
        let node = Node { value: Value::Str(Str { text: value.value, is_variable: false }), at: value.at };
        headers.push((Placed::new(header, name.at), node));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_without_path_gets_default_path() {
        for (url, expected) in [
            ("http://cml:9000", "http://cml:9000/mcp"),
            ("https://a.example/", "https://a.example/mcp"),
            ("https://a.example/x", "https://a.example/x"),
            ("https://a.example/?k=v", "https://a.example/?k=v"),
            ("https://a.example?k=v", "https://a.example?k=v"),
            ("https://", "https://"),
            ("https:///", "https:///"),
            ("https:////", "https:////"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(with_path(url), expected);
        }
    }
}
