//! Parses a server's manifest, `server.json` or `plugin.json`, in which its author describes how to run or reach it.
//!
//! There are two vocabularies: the official registry's (camelCase, formerly snake_case) and the tools provider's.
//! Either file may use either one, so every field is looked up under all its names. A manifest is untrusted: unknown
//! fields are ignored, and the rules of an agent file are applied to the result later.

mod argv;
mod fill;
mod input;
mod suggestion;

use super::{
    diagnostic::Diagnostics,
    json,
    node::{Node, Value},
};
pub(super) use argv::{EntryFields, Selection};
pub(super) use fill::{ManifestFiller, ValueSource};
use input::{Argument, Input, KeyValue};
pub use suggestion::{Suggestion, suggest};

/// Maximum size of a manifest, in bytes.
pub(super) const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;
/// Maximum number of packages, remotes, arguments or variables.
const MAX_ITEMS: usize = 200;

/// A parsed manifest.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) packages: Vec<Package>,
    pub(super) remotes: Vec<Remote>,
}

/// One way to run the server on this machine.
#[derive(Debug)]
pub(super) struct Package {
    /// Name of the launcher or interpreter that runs the package. It may be one that wharf does not support.
    pub(super) runtime: Option<String>,
    /// `npm`, `pypi`, `oci` and others.
    pub(super) registry: Option<String>,
    pub(super) registry_url: Option<String>,
    pub(super) identifier: Option<String>,
    pub(super) version: Option<String>,
    pub(super) transport: Option<String>,
    /// URL at which the package listens, if it does. Only its path is used.
    pub(super) transport_url: Option<String>,
    /// Command line, which the tools provider's manifests have instead of an identifier.
    pub(super) command: Vec<String>,
    pub(super) runtime_arguments: Vec<Argument>,
    pub(super) package_arguments: Vec<Argument>,
    pub(super) variables: Vec<KeyValue>,
}

/// One address at which the server is already running.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) transport: Option<String>,
    pub(super) url: Input,
    pub(super) headers: Vec<KeyValue>,
}

impl Manifest {
    /// Parses a manifest. The error is one sentence and contains no text of the document except a name.
    pub(super) fn read(bytes: &[u8]) -> Result<Manifest, String> {
        let text = str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut diagnostics = Diagnostics::new("manifest", text);
        let root = json::parse(text, &mut diagnostics);
        if let Some(first) = diagnostics.items().first() {
            let (line, _) = super::place::Lines::of(text).position(first.place.map_or(0, |it| it.start));
            let what = first.message.trim_start_matches("ConfigError: ");
            return Err(format!("line {line}: {what}"));
        }
        let root = root.ok_or("it is empty")?;
        // A registry's response wraps the document in `server`.
        let root = root.child("server").filter(|it| matches!(it.value, Value::Map(_))).unwrap_or(&root);
        if !matches!(root.value, Value::Map(_)) {
            return Err("it is not an object".to_owned());
        }
        let packages = read_list(root, &["packages"], Package::read)?;
        let remotes = read_list(root, &["remotes"], Remote::read)?;
        if packages.is_empty() && remotes.is_empty() {
            return Err("it has neither 'packages' nor 'remotes'".to_owned());
        }
        let (name, description) = (text_of(root, &["name"])?, text_of(root, &["description"])?);
        Ok(Manifest { name, description, packages, remotes })
    }
}

impl Package {
    fn read(node: &Node) -> Result<Package, String> {
        let registry = text_of(node, &["registryType", "registry_type", "registry_name", "registryName"])?;
        let named = text_of(node, &["identifier"])?;
        // In one vocabulary `name` is a label. In an older one it is the package's name in the registry.
        let identifier = match (named, &registry) {
            (None, Some(_)) => text_of(node, &["name"])?,
            (named, _) => named,
        };
        let transport = find_value(node, &["transport"]).filter(|it| matches!(it.value, Value::Map(_)));
        let (transport, transport_url) = match transport {
            Some(transport) => (text_of(transport, &["type"])?, text_of(transport, &["url"])?),
            None => (text_of(node, &["transport_type", "transportType", "transport"])?, None),
        };
        Ok(Package {
            runtime: text_of(node, &["runtime", "runtimeHint", "runtime_hint"])?,
            registry_url: text_of(node, &["registryBaseUrl", "registry_base_url"])?,
            version: text_of(node, &["version"])?.filter(|it| !it.is_empty()),
            command: texts_of(node, &["command"])?,
            runtime_arguments: read_list(node, &["runtimeArguments", "runtime_arguments"], Argument::read)?,
            package_arguments: read_list(node, &["packageArguments", "package_arguments"], Argument::read)?,
            variables: read_list(node, &["environmentVariables", "environment_variables"], KeyValue::read)?,
            registry,
            identifier,
            transport,
            transport_url,
        })
    }
}

impl Remote {
    fn read(node: &Node) -> Result<Remote, String> {
        let url = text_of(node, &["url"])?.ok_or("a remote has no 'url'")?;
        Ok(Remote {
            transport: text_of(node, &["type", "transport_type", "transportType", "transport"])?,
            url: Input { value: Some(url), required: true, ..Input::read(node)? },
            headers: read_list(node, &["headers"], KeyValue::read)?,
        })
    }
}

/// Returns the first non-null value among these keys.
fn find_value<'a>(node: &'a Node, keys: &[&str]) -> Option<&'a Node> {
    keys.iter().filter_map(|key| node.child(key)).find(|it| !matches!(it.value, Value::Null))
}

/// Reads a string. Numbers and booleans are converted to strings.
fn text_of(node: &Node, keys: &[&str]) -> Result<Option<String>, String> {
    let Some(found) = find_value(node, keys) else { return Ok(None) };
    text(found).map(Some).ok_or_else(|| format!("'{}' is not a string", keys[0]))
}

fn text(node: &Node) -> Option<String> {
    match &node.value {
        Value::Str(it) => Some(it.text.expose().to_owned()).filter(|it| !it.contains('\0')),
        Value::Int(it) => Some(it.to_string()),
        Value::Float(it) => Some(it.to_string()),
        Value::Bool(it) => Some(it.to_string()),
        Value::Null | Value::Broken | Value::Seq(_) | Value::Map(_) => None,
    }
}

/// Reads a list of strings or a single string.
fn texts_of(node: &Node, keys: &[&str]) -> Result<Vec<String>, String> {
    let Some(found) = find_value(node, keys) else { return Ok(Vec::new()) };
    let items = match &found.value {
        Value::Seq(items) => items.iter().collect(),
        _ => vec![found],
    };
    let texts: Option<Vec<String>> = items.into_iter().map(text).collect();
    texts.filter(|it| it.len() <= MAX_ITEMS).ok_or_else(|| format!("'{}' is not a list of strings", keys[0]))
}

fn read_list<T>(
    node: &Node,
    keys: &[&str],
    read: impl Fn(&Node) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    match find_value(node, keys).map(|it| &it.value) {
        None => Ok(Vec::new()),
        Some(Value::Seq(items)) if items.len() <= MAX_ITEMS => items.iter().map(read).collect(),
        Some(_) => Err(format!("'{}' is not a list or is too long", keys[0])),
    }
}

fn flag_of(node: &Node, keys: &[&str]) -> bool {
    matches!(find_value(node, keys).map(|it| &it.value), Some(Value::Bool(true)))
}

/// Reads the pairs of an object.
fn read_map<T>(
    node: &Node,
    keys: &[&str],
    read: impl Fn(&Node) -> Result<T, String>,
) -> Result<Vec<(String, T)>, String> {
    match find_value(node, keys).map(|it| &it.value) {
        None => Ok(Vec::new()),
        Some(Value::Map(pairs)) if pairs.len() <= MAX_ITEMS => {
            pairs.iter().map(|it| Ok((it.key.clone(), read(&it.node)?))).collect()
        }
        Some(_) => Err(format!("'{}' is not an object or is too large", keys[0])),
    }
}
