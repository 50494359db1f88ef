//! Lowers `overrides` of an entry.

use super::tool::CLASS;
use crate::{
    diagnostic::Diagnostics,
    file_position::FilePosition,
    glob::Glob,
    node::{Node, Pair, Value},
    overrides::{ArgumentChange, ArgumentOverride, Overrides, ToolOverride},
    place::Place,
    raw::{Field, RawAnnotations, RawArgumentOverride, RawOverride},
    read::Reader,
};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// Maximum number of overrides in one entry.
const MAX_OVERRIDES: usize = 500;

/// Lowers the overrides of an entry. `position` finds the line of a place.
pub(super) fn overrides(
    field: Option<Field>,
    position: &impl Fn(Place) -> FilePosition,
    diagnostics: &mut Diagnostics,
) -> Overrides {
    let mut overrides = Overrides::default();
    let Some(pairs) = field.and_then(|it| mapping("overrides", it.node, diagnostics)) else {
        return overrides;
    };
    if let Some(first) = pairs.first().filter(|_| pairs.len() > MAX_OVERRIDES) {
        diagnostics.too_many_overrides(first.key_at, pairs.len(), MAX_OVERRIDES);
        return overrides;
    }
    let mut names = BTreeMap::new();
    for Pair { key, key_at, node } in pairs {
        let Some(raw) = RawOverride::read(node, diagnostics) else { continue };
        let is_glob = key.contains(['*', '?']);
        if is_glob {
            reject_keys_of_glob(&raw, &key, diagnostics);
        }
        let lowered = tool_override(raw, key_at, position, &mut names, diagnostics);
        match is_glob {
            true => overrides.globs.push((Glob::new(key), lowered)),
            false => _ = overrides.exact.insert(key, lowered),
        }
    }
    overrides
}

fn mapping(key: &str, node: Node, diagnostics: &mut Diagnostics) -> Option<Vec<Pair>> {
    match node.value {
        Value::Map(pairs) => Some(pairs),
        _ => {
            diagnostics.wrong_type(CLASS, key, "a mapping", &node);
            None
        }
    }
}

fn reject_keys_of_glob(raw: &RawOverride, glob: &str, diagnostics: &mut Diagnostics) {
    let RawOverride { enabled: _, name, title, description, arguments, annotations: _ } = raw;
    let fields = [("name", name), ("title", title), ("description", description), ("arguments", arguments)];
    for (key, field) in fields {
        if let Some(field) = field {
            diagnostics.key_not_for_glob(field.key_at, key, glob);
        }
    }
}

fn tool_override(
    raw: RawOverride,
    at: Place,
    position: &impl Fn(Place) -> FilePosition,
    names: &mut BTreeMap<String, Place>,
    diagnostics: &mut Diagnostics,
) -> ToolOverride {
    let RawOverride { enabled, name, title, description, arguments, annotations } = raw;
    let mut reader = Reader { class: CLASS, diagnostics };
    let enabled = reader.flag("enabled", enabled).unwrap_or(true);
    let name = shown_name("name", name, &mut reader);
    let title = reader.text("title", title).map(|it| it.value.shown().to_owned());
    let description = reader.text("description", description).map(|it| it.value.shown().to_owned());
    if let Some((name, at)) = &name
        && let Some(first) = names.insert(name.clone(), *at)
    {
        diagnostics.duplicate_shown_name(*at, name, first);
    }
    ToolOverride {
        enabled,
        name: name.map(|(name, _)| name),
        title,
        description,
        arguments: self::arguments(arguments, position, diagnostics),
        annotations: self::annotations(annotations, diagnostics),
        at: position(at),
    }
}

/// Reads a name that clients see. It must not be empty.
fn shown_name(key: &str, field: Option<Field>, reader: &mut Reader<'_>) -> Option<(String, Place)> {
    let text = reader.text(key, field)?;
    if text.value.is_blank() {
        reader.diagnostics.empty_identifier(text.at, key);
        return None;
    }
    Some((text.value.shown().to_owned(), text.at))
}

fn arguments(
    field: Option<Field>,
    position: &impl Fn(Place) -> FilePosition,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<String, ArgumentOverride> {
    let pairs = field.and_then(|it| mapping("arguments", it.node, diagnostics)).unwrap_or_default();
    let mut names = BTreeMap::new();
    let mut arguments = BTreeMap::new();
    for Pair { key, key_at, node } in pairs {
        let Some(raw) = RawArgumentOverride::read(node, diagnostics) else { continue };
        if let Some(change) = argument_change(raw, &mut names, diagnostics) {
            arguments.insert(key, ArgumentOverride { change, at: position(key_at) });
        }
    }
    arguments
}

/// Lowers the change of one argument. `None` means that at least one diagnostic was recorded.
fn argument_change(
    raw: RawArgumentOverride,
    names: &mut BTreeMap<String, Place>,
    diagnostics: &mut Diagnostics,
) -> Option<ArgumentChange> {
    let RawArgumentOverride { fixed, hidden, name, description, default } = raw;
    let mut reader = Reader { class: CLASS, diagnostics };
    let hidden = hidden.map(|it| (it.key_at, reader.flag("hidden", Some(it))));
    let is_hidden = hidden.as_ref().is_some_and(|(_, flag)| *flag == Some(true));
    let because = match (&fixed, is_hidden) {
        (Some(_), _) => Some("fixed"),
        (None, true) => Some("hidden"),
        (None, false) => None,
    };
    let hidden_at = hidden.filter(|_| fixed.is_some()).map(|(at, _)| ("hidden", at));
    let at = |key, field: &Option<Field>| field.as_ref().map(|it| (key, it.key_at));
    let others = [hidden_at, at("name", &name), at("description", &description), at("default", &default)];
    if let Some(because) = because {
        let mut others = others.into_iter().flatten().peekable();
        let is_alone = others.peek().is_none();
        others.for_each(|(key, at)| reader.diagnostics.useless_argument_key(at, key, because));
        if !is_alone {
            return None;
        }
    }
    if let Some(fixed) = fixed {
        return reader.any_json("fixed", fixed).map(ArgumentChange::Fixed);
    }
    if is_hidden {
        return Some(ArgumentChange::Hidden);
    }
    let name = shown_name("name", name, &mut reader);
    if let Some((name, at)) = &name
        && let Some(first) = names.insert(name.clone(), *at)
    {
        reader.diagnostics.duplicate_argument_name(*at, name, first);
    }
    Some(ArgumentChange::Shown {
        name: name.map(|(name, _)| name),
        description: reader.text("description", description).map(|it| it.value.shown().to_owned()),
        default: default.and_then(|it| reader.any_json("default", it)),
    })
}

fn annotations(field: Option<Field>, diagnostics: &mut Diagnostics) -> Map<String, Json> {
    let mut annotations = Map::new();
    let Some(raw) = field.and_then(|it| RawAnnotations::read(it.node, diagnostics)) else {
        return annotations;
    };
    let RawAnnotations { title, read_only, destructive, idempotent, open_world } = raw;
    let mut reader = Reader { class: CLASS, diagnostics };
    if let Some(title) = reader.text("title", title) {
        annotations.insert("title".to_owned(), title.value.shown().into());
    }
    let hints = [
        ("readOnlyHint", read_only),
        ("destructiveHint", destructive),
        ("idempotentHint", idempotent),
        ("openWorldHint", open_world),
    ];
    for (key, field) in hints {
        if let Some(flag) = reader.flag(key, field) {
            annotations.insert(key.to_owned(), flag.into());
        }
    }
    annotations
}
