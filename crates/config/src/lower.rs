//! Lowers a parsed agent file to a [`Plan`], entry by entry.

pub(super) mod agent_settings;
mod auth;
mod endpoint;
pub(super) mod fault_rules;
pub(crate) mod json_schema;
mod lock;
mod model;
mod overrides;
mod record;
mod results;
pub(super) mod scenario;
mod tool;

use lock::EntryOptions;
pub(super) use tool::tool;

use super::{
    diagnostic::Diagnostics,
    env::Env,
    mask,
    node::{Node, Pair, Value},
    place::Place,
    plan::{Plan, Source},
    raw::{Field, Fields, RawAgent, RawInstructions},
    read::Reader,
    url,
    variables::{Scope, Substitution},
};
use crate::{agent_settings::AgentSettings, masked_string::MaskedString};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of `tools:` entries in one agent file.
const MAX_TOOLS: usize = 50;
/// Maximum size of an instructions file, in bytes.
const MAX_INSTRUCTIONS_BYTES: u64 = 1024 * 1024;

/// Lowers an agent file. `None` means that at least one diagnostic was recorded.
pub(super) fn agent(root: Node, source: &str, env: &Env, diagnostics: &mut Diagnostics) -> Option<Plan> {
    hide_secrets(&root, false, diagnostics);
    // After an error the tree can be incomplete (a repeated key is dropped), so it may not contain every secret.
    if !diagnostics.has_errors() {
        diagnostics.secrets_known = true;
    }
    let mut raw = RawAgent::read(root, diagnostics)?;
    let mut substitution = Substitution::new(source);
    let tools = raw.tools.take();
    let scope = Scope { env, env_file: Some(&[]) };
    for field in raw.fields_mut() {
        substitution.apply(&mut field.node, &scope, diagnostics);
    }
    let (sources, mut entries) = sources(tools, &mut substitution, env, diagnostics);
    #[rustfmt::skip]
    let RawAgent {
        name, description, author, model, instructions, tools: _, limits, approval, context, response_format,
        sampling, lock, results, record,
    } = raw;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let name = reader.text("name", name).map(|it| it.value);
    let description = reader.text("description", description).map(|it| it.value);
    let author = reader.text("author", author).map(|it| it.value);
    let model = model.and_then(|it| model::model(it.node, env, diagnostics));
    let instructions = instructions.and_then(|it| self::instructions(it, env, diagnostics));
    let agent = AgentSettings {
        limits: agent_settings::limits(limits, diagnostics),
        approval: agent_settings::approval(approval, diagnostics),
        sampling: agent_settings::sampling(sampling, diagnostics),
        context: agent_settings::context(context, diagnostics),
        response_format: agent_settings::response_format(response_format, env, diagnostics),
    };
    let record = record::record(record, diagnostics);
    let mut sources = sources?;
    results::apply(results, &mut entries, &mut sources, diagnostics);
    let lock = lock::apply(lock, entries, &mut sources, env, diagnostics);
    Some(Plan { name, description, author, model, instructions, agent, sources, lock, record })
}

fn sources(
    tools: Option<Field>,
    substitution: &mut Substitution<'_>,
    env: &Env,
    diagnostics: &mut Diagnostics,
) -> (Option<Vec<Source>>, Vec<EntryOptions>) {
    let mut entries = Vec::new();
    let Some(tools) = tools else { return (Some(Vec::new()), entries) };
    let Value::Seq(nodes) = tools.node.value else {
        diagnostics.wrong_type("ConfigError", "tools", "a list of tools", &tools.node);
        return (None, entries);
    };
    if nodes.len() > MAX_TOOLS {
        diagnostics.too_many_tools(tools.key_at, nodes.len(), MAX_TOOLS);
        return (None, entries);
    }
    let sources: Vec<Option<Source>> =
        nodes.into_iter().map(|it| tool(it, substitution, env, &mut entries, diagnostics)).collect();
    check_unique_names(&entries, diagnostics);
    (sources.into_iter().collect(), entries)
}

/// V-01: names must be unique. Reports all duplicates in one diagnostic, at the first repetition.
fn check_unique_names(entries: &[EntryOptions], diagnostics: &mut Diagnostics) {
    let mut first: BTreeMap<&str, Place> = BTreeMap::new();
    let mut repeated: Vec<(Place, Place)> = Vec::new();
    let mut duplicates = BTreeSet::new();
    for EntryOptions { name, .. } in entries {
        match first.get(name.value.expose()) {
            Some(before) => {
                repeated.push((name.at, *before));
                duplicates.insert(name.value.shown());
            }
            None => _ = first.insert(name.value.expose(), name.at),
        }
    }
    if let Some((at, before)) = repeated.first() {
        let duplicates: Vec<&str> = duplicates.into_iter().collect();
        diagnostics.duplicate_names(*at, &duplicates, *before);
    }
}

/// Marks secrets so that no diagnostic quotes them: header values, values of keys that sound secret, and the private
/// parts of URLs.
fn hide_secrets(node: &Node, secret: bool, diagnostics: &mut Diagnostics) {
    match &node.value {
        Value::Seq(items) => items.iter().for_each(|it| hide_secrets(it, secret, diagnostics)),
        Value::Map(pairs) => {
            for Pair { key, node, .. } in pairs {
                let looks_secret = mask::is_headers_key(key) || mask::is_secret_name(key);
                hide_secrets(node, secret || looks_secret, diagnostics);
                if let Value::Str(it) = &node.value
                    && matches!(key.as_str(), "url" | "endpoint")
                {
                    url::hide_private_parts(node.at, it.text.expose(), diagnostics);
                }
            }
        }
        _ if secret => diagnostics.hide(node.at),
        Value::Str(it) if it.text.expose().contains("://") => {
            url::hide_private_parts(node.at, it.text.expose(), diagnostics);
        }
        _ => {}
    }
}

fn instructions(field: Field, env: &Env, diagnostics: &mut Diagnostics) -> Option<MaskedString> {
    let at = field.key_at;
    let RawInstructions { file, inline } = RawInstructions::read(field.node, diagnostics)?;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    if file.is_some() == inline.is_some() {
        diagnostics.instructions_file_or_inline(at);
        return None;
    }
    if let Some(inline) = reader.text("inline", inline) {
        return Some(inline.value);
    }
    let path = reader.text("file", file)?;
    match env.files.read(path.value.expose(), MAX_INSTRUCTIONS_BYTES) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Some(MaskedString::plain(text)),
            Err(_) => {
                diagnostics.file_not_text(path.at, "ConfigError", "instructions.file", &path.value);
                None
            }
        },
        Err(error) => {
            diagnostics.file_error(path.at, "ConfigError", "instructions.file", &path.value, &error);
            None
        }
    }
}
