//! What is registered while the program runs: read, checked by the rules of an agent file and stricter ones, and cut in
//! two: a definition that may be stored and shown, and the secrets that belong to it.
//!
//! A body is an entry of `tools:` as JSON, or a source in the words of the tools provider (`mcp_server_url`,
//! `mcp_plugin_dir`), which is translated into such an entry; past that there is one loader. A stored definition comes
//! back the same way, with its secrets filled in where it only has names.

mod entry;
mod plugin;
mod remote;

use super::{
    decode,
    diagnostic::Diagnostics,
    env::{Env, Origin},
    json, lower,
    node::{Node, Pair, Str, Value},
    place::Place,
    plan::{Endpoint, Lifecycle, Source},
    raw::{Field, RawRegistration},
    read::{Reader, json_tree},
    variables::Substitution,
};
use crate::text::Text;
use std::{collections::BTreeMap, fmt};

/// The mappings whose values are secrets, whatever their keys are.
const SECTIONS: [&str; 3] = ["env", "headers", "mcp_env_vars"];
/// What stands for a secret where it is shown.
const SHOWN: &str = "***";
/// The longest name of a source that is registered.
const LONGEST_NAME: usize = 128;

/// What was registered, read.
#[derive(Clone, PartialEq, Eq)]
pub struct Registration {
    /// What the source is called.
    pub name: String,
    /// What is stored: JSON, in which secrets have names and no values.
    pub definition: String,
    /// What is encrypted beside it, by the names in the definition.
    pub secrets: BTreeMap<String, String>,
    /// When its server runs.
    pub lifecycle: Lifecycle,
}

/// A stored source as it can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    /// The source, unless something that it needs is missing.
    pub source: Option<Source>,
    /// The names of required variables that have no value.
    pub missing: Vec<String>,
}

/// A source that is being read.
struct Reading {
    source: Source,
    missing: Vec<String>,
}

/// Reads what somebody registers. Either there is a registration, and perhaps warnings, or there are errors.
///
/// Whether everything is there that the source needs is for [`restore`] to say.
pub fn register(body: &str, env: &Env) -> (Option<Registration>, Diagnostics) {
    read(body, "the request", |mut root, diagnostics| {
        let secrets = take_secrets(&mut root);
        let definition = json_tree(&without_secrets(&root), Text::expose).to_string();
        let Reading { source, .. } = lowered(root, env, diagnostics)?;
        let name = source.name.expose().to_owned();
        Some(Registration { name, definition, secrets, lifecycle: source.lifecycle })
    })
}

/// Reads a stored source again. It is checked anew: the operator may allow less than when it was registered.
pub fn restore(
    definition: &str,
    secrets: &BTreeMap<String, String>,
    env: &Env,
) -> (Option<Restored>, Diagnostics) {
    read(definition, "the stored source", |mut root, diagnostics| {
        let lost = fill_in(&mut root, secrets);
        let Reading { source, mut missing } = lowered(root, env, diagnostics)?;
        missing.extend(lost);
        missing.sort();
        missing.dedup();
        Some(Restored { source: missing.is_empty().then_some(source), missing })
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
    // Nothing of it is quoted: where it is broken, nobody can tell what in it is a secret.
    diagnostics.hide(Place::new(0, source.len()));
    let found = json::parse(&source, &mut diagnostics).and_then(|root| lower(root, &mut diagnostics));
    diagnostics.settle();
    (found.filter(|_| !diagnostics.has_errors()), diagnostics)
}

/// The source that this means, by the loader of agent files.
fn lowered(root: Node, env: &Env, diagnostics: &mut Diagnostics) -> Option<Reading> {
    let in_provider_words = matches!(&root.value, Value::Map(pairs)
        if pairs.iter().any(|it| it.key == "source_type" || it.key.starts_with("mcp_")));
    let afar = Env { origin: Origin::Rest, files: entry::afar(env), home: None, ..env.clone() };
    let mut serves = None;
    let (node, env, missing) = match in_provider_words {
        false => (root, afar, Vec::new()),
        true => {
            let raw = RawRegistration::read(root, diagnostics)?;
            match raw.plugin_dir {
                Some(_) => {
                    let plugin = plugin::plugin(raw, env, diagnostics)?;
                    serves = plugin.serves;
                    (plugin.entry, plugin.env, plugin.missing)
                }
                None => (remote::entry(raw, diagnostics)?, afar, Vec::new()),
            }
        }
    };
    let mut names = Vec::new();
    let source = lower::tool(node, &mut Substitution::new(""), &env, &mut names, diagnostics);
    let fits = |it: &str| it.chars().count() <= LONGEST_NAME && !it.contains(char::is_control);
    if let Some(name) = names.iter().find(|it| !fits(it.value.expose())) {
        diagnostics.source_name(name.at, LONGEST_NAME);
        return None;
    }
    let mut source = source?;
    if let Endpoint::Stdio(launch) = &mut source.endpoint {
        launch.serves = serves;
    }
    Some(Reading { source, missing })
}

/// `source_type`, which is `mcp` where it is said at all.
fn source_type(field: Option<Field>, reader: &mut Reader<'_>) {
    if let Some(kind) = reader.text("source_type", field).filter(|it| it.value.expose() != "mcp") {
        reader.diagnostics.unknown_source_type(kind.at, kind.value.shown());
    }
}

/// Hands out the values of the sections that hold secrets, and makes them secret where they stand.
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

/// The same tree with nothing where secrets stand.
fn without_secrets(root: &Node) -> Node {
    let mut root = root.clone();
    each_secret(&mut root, |_, node| node.value = Value::Null);
    root
}

/// Puts secrets where only their names stand. The names that have none.
fn fill_in(root: &mut Node, secrets: &BTreeMap<String, String>) -> Vec<String> {
    let mut lost = Vec::new();
    each_secret(root, |name, node| match secrets.get(name) {
        Some(value) => node.value = secret(value),
        None => lost.push(name.to_owned()),
    });
    lost
}

fn each_secret(root: &mut Node, mut visit: impl FnMut(&str, &mut Node)) {
    each_section(root, |pairs| pairs.iter_mut().for_each(|it| visit(&it.key, &mut it.node)));
}

fn each_section(root: &mut Node, mut visit: impl FnMut(&mut Vec<Pair>)) {
    let Value::Map(sections) = &mut root.value else { return };
    for section in sections.iter_mut().filter(|it| SECTIONS.contains(&it.key.as_str())) {
        if let Value::Map(pairs) = &mut section.node.value {
            visit(pairs);
        }
    }
}

fn secret(value: &str) -> Value {
    Value::Str(Str { text: Text::secret(value, SHOWN), is_variable: false })
}

// The values of secrets are nobody's to print.
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
