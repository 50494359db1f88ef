//! Loads sources that are registered at run time. Applies the rules of an agent file plus stricter ones, and splits a
//! registration into a definition that may be stored and shown, and its secrets.
//!
//! A body is either an entry of `tools:` as JSON, or a source in the tools provider's vocabulary (`mcp_server_url`,
//! `mcp_plugin_dir`), which is translated into such an entry. From there on, the loader of agent files handles both.
//! A stored definition takes the same path, with its secrets filled in.

mod entry;
mod plugin;
mod remote;

use super::{
    decode,
    diagnostic::Diagnostics,
    env::{Env, Origin},
    json,
    json_tree::json_tree,
    lower,
    node::{Node, Pair, Str, Value},
    place::Place,
    plan::{Endpoint, Lifecycle, Source},
    raw::{Field, RawRegistration},
    read::Reader,
    variables::Substitution,
};
use crate::masked_string::MaskedString;
use std::{collections::BTreeMap, fmt};

/// Mappings whose values are secrets, whatever their keys.
const SECRET_SECTIONS: [&str; 3] = ["env", "headers", "mcp_env_vars"];
/// Placeholder for a secret in shown text.
const SECRET_PLACEHOLDER: &str = "***";
/// Maximum length of the name of a registered source.
const MAX_NAME_CHARS: usize = 128;

/// A parsed registration.
#[derive(Clone, PartialEq, Eq)]
pub struct Registration {
    /// Name of the source.
    pub name: String,
    /// Definition to store: JSON in which secrets have names but no values.
    pub definition: String,
    /// Secrets to encrypt and store beside the definition, by their names in the definition.
    pub secrets: BTreeMap<String, String>,
    /// Lifetime of the server.
    pub lifecycle: Lifecycle,
}

/// A stored source, loaded again.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoredSource {
    /// The source, or `None` if required values are missing.
    pub source: Option<Source>,
    /// Names of the required variables that have no value.
    pub missing: Vec<String>,
    /// Names of the values for one call that the source does not take.
    pub rejected: Vec<String>,
}

/// Intermediate result of loading a source.
struct LoadedSource {
    source: Source,
    missing: Vec<String>,
    rejected: Vec<String>,
}

/// Parses a registration. Returns either a registration, possibly with warnings, or at least one error.
///
/// Does not check whether all values that the source needs are present; [`restore`] does.
pub fn register(body: &str, env: &Env) -> (Option<Registration>, Diagnostics) {
    read(body, "the request", |mut root, diagnostics| {
        let secrets = take_secrets(&mut root);
        let definition = json_tree(&without_secrets(&root), MaskedString::expose).to_string();
        let LoadedSource { source, .. } = lower_registration(root, env, diagnostics)?;
        let name = source.name.expose().to_owned();
        Some(Registration { name, definition, secrets, lifecycle: source.lifecycle })
    })
}

/// Loads a stored source. Checks it again, because the operator may have revoked grants since it was registered.
pub fn restore(
    definition: &str,
    secrets: &BTreeMap<String, String>,
    env: &Env,
) -> (Option<RestoredSource>, Diagnostics) {
    read(definition, "the stored source", |mut root, diagnostics| {
        let missing_secrets = insert_secrets(&mut root, secrets);
        let LoadedSource { source, mut missing, rejected } = lower_registration(root, env, diagnostics)?;
        missing.extend(missing_secrets);
        missing.sort();
        missing.dedup();
        Some(RestoredSource { source: missing.is_empty().then_some(source), missing, rejected })
    })
}

fn read<T>(
    text: &str,
    file: &str,
    lower: impl FnOnce(Node, &mut Diagnostics) -> Option<T>,
) -> (Option<T>, Diagnostics) {
    let mut diagnostics = match decode(text.as_bytes(), file) {
        Ok(text) => Diagnostics::new(file, text),
        Err(diagnostics) => return (None, diagnostics),
    };
    let source = diagnostics.source().to_owned();
    // Quote nothing, because in malformed input secrets cannot be told apart from other text.
    diagnostics.hide(Place::new(0, source.len()));
    let found = json::parse(&source, &mut diagnostics).and_then(|root| lower(root, &mut diagnostics));
    diagnostics.finish();
    (found.filter(|_| !diagnostics.has_errors()), diagnostics)
}

/// Lowers the definition with the loader of agent files.
fn lower_registration(root: Node, env: &Env, diagnostics: &mut Diagnostics) -> Option<LoadedSource> {
    let uses_provider_vocabulary = matches!(&root.value, Value::Map(pairs)
        if pairs.iter().any(|it| it.key == "source_type" || it.key.starts_with("mcp_")));
    let restricted = Env {
        assumes_variables: false,
        origin: Origin::Rest,
        files: entry::restricted(env),
        home: None,
        ..env.clone()
    };
    let mut port = None;
    let mut rejected: Vec<String> = env.call_values.keys().cloned().collect();
    let (node, env, missing) = match uses_provider_vocabulary {
        false => (root, restricted, Vec::new()),
        true => {
            let raw = RawRegistration::read(root, diagnostics)?;
            match raw.plugin_dir {
                Some(_) => {
                    let plugin = plugin::plugin_entry(raw, env, diagnostics)?;
                    port = plugin.port;
                    rejected = plugin.rejected;
                    (plugin.entry, plugin.env, plugin.missing)
                }
                None => (remote::entry(raw, diagnostics)?, restricted, Vec::new()),
            }
        }
    };
    let mut names = Vec::new();
    let source = lower::tool(node, &mut Substitution::new(""), &env, &mut names, diagnostics);
    let fits = |it: &str| it.chars().count() <= MAX_NAME_CHARS && !it.contains(char::is_control);
    if let Some(name) = names.iter().map(|it| &it.name).find(|it| !fits(it.value.expose())) {
        diagnostics.invalid_source_name(name.at, MAX_NAME_CHARS);
        return None;
    }
    let mut source = source?;
    if let Endpoint::Stdio(launch) = &mut source.endpoint {
        launch.port = port;
    }
    Some(LoadedSource { source, missing, rejected })
}

/// Checks `source_type`, which must be `mcp` if present.
fn check_source_type(field: Option<Field>, reader: &mut Reader<'_>) {
    if let Some(kind) = reader.text("source_type", field).filter(|it| it.value.expose() != "mcp") {
        reader.diagnostics.unknown_source_type(kind.at, kind.value.shown());
    }
}

/// Extracts the values of the secret sections, and marks them as secret in the tree.
fn take_secrets(root: &mut Node) -> BTreeMap<String, String> {
    let mut secrets = BTreeMap::new();
    each_section(root, |pairs| pairs.retain(|it| !matches!(it.node.value, Value::Null)));
    each_secret(root, |name, node| {
        if let Value::Str(it) = &node.value {
            let value = it.text.expose().to_owned();
            node.value = secret(&value);
            secrets.insert(name.to_owned(), value);
        }
    });
    secrets
}

/// Returns a copy of the tree with all secrets replaced by null.
fn without_secrets(root: &Node) -> Node {
    let mut root = root.clone();
    each_secret(&mut root, |_, node| node.value = Value::Null);
    root
}

/// Inserts the secrets into the tree. Returns the names that have no value.
fn insert_secrets(root: &mut Node, secrets: &BTreeMap<String, String>) -> Vec<String> {
    let mut missing_secrets = Vec::new();
    each_secret(root, |name, node| match secrets.get(name) {
        Some(value) => node.value = secret(value),
        None => missing_secrets.push(name.to_owned()),
    });
    missing_secrets
}

fn each_secret(root: &mut Node, mut visit: impl FnMut(&str, &mut Node)) {
    each_section(root, |pairs| pairs.iter_mut().for_each(|it| visit(&it.key, &mut it.node)));
}

fn each_section(root: &mut Node, mut visit: impl FnMut(&mut Vec<Pair>)) {
    let Value::Map(sections) = &mut root.value else { return };
    for section in sections.iter_mut().filter(|it| SECRET_SECTIONS.contains(&it.key.as_str())) {
        if let Value::Map(pairs) = &mut section.node.value {
            visit(pairs);
        }
    }
}

fn secret(value: &str) -> Value {
    Value::Str(Str { text: MaskedString::secret(value, SECRET_PLACEHOLDER), is_variable: false })
}

// `Debug` must not print the values of secrets.
impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Registration { name, definition, secrets, lifecycle } = self;
        f.debug_struct("Registration")
            .field("name", name)
            .field("definition", definition)
            .field("secrets", &secrets.keys().collect::<Vec<_>>())
            .field("lifecycle", lifecycle)
            .finish()
    }
}
