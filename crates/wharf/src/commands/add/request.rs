//! Parses the argument of `wharf add`: a package, a URL, a manifest, or a client's configuration file or JSON block.

use super::package::{Package, to_server_name};
use crate::{
    bundle::{Bundle, is_bundle},
    environment::Environment,
    import::{ClientFile, parse_json},
};
use serde_json::{Map, Value, json};
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};
use url::Url;
use wharf_config::{FileError, read_regular};

/// Maximum size of the input, in bytes.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// Manifest file names to look for in a folder.
const MANIFEST_FILES: [&str; 2] = ["plugin.json", "server.json"];

/// The servers to add.
pub(super) enum AddRequest {
    /// A server.json or plugin.json, and its origin for messages.
    Manifest { bytes: Vec<u8>, shown: String },
    /// Servers in a client's format, their origin for messages, and a note for the user.
    Servers { file: ClientFile, shown: String, note: Option<String> },
    /// The server of a bundle, and the path of the bundle for messages.
    Bundle { bundle: Bundle, shown: String },
}

impl AddRequest {
    pub(super) fn read(
        typed: &str,
        own: &[String],
        name: Option<&str>,
        environment: &Environment,
    ) -> Result<AddRequest, String> {
        let start = typed.trim_start();
        if typed == "-" {
            return AddRequest::text(stdin()?, "standard input", name);
        }
        if start.starts_with(['{', '"']) {
            return AddRequest::text(typed.as_bytes().to_vec(), "the command line", name);
        }
        if let Some(request) = AddRequest::remote(typed, name) {
            return Ok(request);
        }
        let path = environment.folder.join(typed);
        if is_bundle(&path) {
            return AddRequest::bundle(&path, name, environment);
        }
        // A package name can contain `/` like a path. If the path exists, it is a path.
        let is_file_name = typed.ends_with(".json") || typed.ends_with(".toml");
        if is_file_name || fs::exists(&path).unwrap_or(false) {
            return AddRequest::file(&path, name);
        }
        match Package::read(typed) {
            Ok(Some(package)) => Ok(AddRequest::package(&package, own, name)),
            Err(word) => Err(format!(
                "error: `{word}` may be an npm or a PyPI package\nhelp: choose one: `wharf add npm:{word}` or `wharf add pypi:{word}`\n"
            )),
            Ok(None) => AddRequest::file(&path, name),
        }
    }

    fn bundle(path: &Path, name: Option<&str>, environment: &Environment) -> Result<AddRequest, String> {
        let shown = path.display().to_string();
        let bundle = open_bundle(path, name, environment)?;
        Ok(AddRequest::Bundle { bundle, shown })
    }

    fn remote(typed: &str, name: Option<&str>) -> Option<AddRequest> {
        let scheme = typed.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase())?;
        let is_remote = matches!(scheme.as_str(), "http" | "https" | "ws" | "wss");
        let name = name.map_or_else(|| name_of_address(typed), str::to_owned);
        is_remote.then(|| AddRequest::servers(&name, json!({ "url": typed }), None))
    }

    fn package(package: &Package<'_>, own: &[String], name: Option<&str>) -> AddRequest {
        let (command, args) = package.command(own);
        let name = name.map_or_else(|| package.server_name(), str::to_owned);
        let note = package.takes_folders().then(|| {
            let folders =
                if own.is_empty() { "the folder of the agent file".to_owned() } else { own.join(", ") };
            format!("it may read and write {folders}; other folders go after `--`")
        });
        AddRequest::servers(&name, json!({ "command": command, "args": args }), note)
    }

    fn servers(name: &str, server: Value, note: Option<String>) -> AddRequest {
        let text = json!({ "mcpServers": { name: server } }).to_string();
        let file = ClientFile { text, path: PathBuf::new(), client: None };
        AddRequest::Servers { file, shown: "the command line".to_owned(), note }
    }

    /// Reads a file, or the manifest in a folder.
    fn file(path: &Path, name: Option<&str>) -> Result<AddRequest, String> {
        let inside = MANIFEST_FILES.map(|it| path.join(it)).into_iter().find(|it| it.is_file());
        let path = inside.filter(|_| path.is_dir()).unwrap_or_else(|| path.to_owned());
        let shown = path.display().to_string();
        let bytes = read_regular(&path, MAX_INPUT_BYTES).map_err(|trouble| {
            let help = match trouble {
                FileError::Missing | FileError::NotRegular(_) => {
                    "help: give a package (`npm:NAME`, `pypi:NAME`), a URL (https://…), a server.json or plugin.json, a bundle (.mcpb), or a client's JSON block\n"
                }
                _ => "",
            };
            format!("error: '{shown}' {trouble}\n{help}")
        })?;
        if path.extension().is_some_and(|it| it == "toml") {
            let text =
                String::from_utf8(bytes).map_err(|_| format!("error: '{shown}' is not UTF-8 text\n"))?;
            return Ok(AddRequest::Servers {
                file: ClientFile { text, path, client: None },
                shown,
                note: None,
            });
        }
        AddRequest::text(bytes, &shown, name)
    }

    /// Parses JSON: a manifest, a client's file, its list of servers, or one server from it.
    fn text(bytes: Vec<u8>, shown: &str, name: Option<&str>) -> Result<AddRequest, String> {
        let text = String::from_utf8(bytes).map_err(|_| format!("error: {shown} is not UTF-8 text\n"))?;
        // Documentation pages often show a member of `mcpServers` without the enclosing braces.
        let text = if text.trim_start().starts_with('"') { format!("{{{text}}}") } else { text };
        let servers = parse_json(&text).ok().and_then(|it| to_client_file(it, name));
        Ok(match servers {
            None => AddRequest::Manifest { bytes: text.into_bytes(), shown: shown.to_owned() },
            Some(root) => {
                let path = Path::new(shown).to_owned();
                let file = ClientFile { text: root.to_string(), path, client: None };
                AddRequest::Servers { file, shown: shown.to_owned(), note: None }
            }
        })
    }
}

/// Unpacks a bundle into the state folder.
pub(in crate::commands) fn open_bundle(
    path: &Path,
    name: Option<&str>,
    environment: &Environment,
) -> Result<Bundle, String> {
    let bundles = environment.bundles();
    let bundles =
        bundles.ok_or("error: there is no folder for the bundle\nhelp: set WHARF_HOME\n".to_owned())?;
    Bundle::open(path, &bundles, name).map_err(|why| format!("error: '{}' {why}\n", path.display()))
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
fn name_of_address(address: &str) -> String {
    let host = Url::parse(address).ok().and_then(|it| it.host_str().map(str::to_owned)).unwrap_or_default();
    let is_number = host.starts_with('[') || host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let labels: Vec<&str> = host.split('.').collect();
    let is_specific = |it: &&&str| !matches!(**it, "mcp" | "api" | "www" | "server");
    let known = labels.iter().take(labels.len().saturating_sub(1).max(1)).find(is_specific);
    to_server_name(if is_number { &host } else { known.copied().unwrap_or(&host) })
}

fn stdin() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes);
    match read {
        Err(error) => Err(format!("error: standard input cannot be read: {error}\n")),
        Ok(_) if bytes.len() as u64 > MAX_INPUT_BYTES => {
            Err(format!("error: standard input is larger than {} MiB\n", MAX_INPUT_BYTES / 1024 / 1024))
        }
        Ok(_) => Ok(bytes),
    }
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
