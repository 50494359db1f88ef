//! Compares all that is locked of a server.

use super::{
    Difference, DifferenceKind, DifferenceSeverity, LockedKind, compare_instructions, compare_items,
    compare_tools,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wharf_config::{LockedItem, LockedPackage, LockedServer};

/// Locked items by name.
type LockedItems = BTreeMap<String, LockedItem>;

/// The differences of one tool, prompt or template, or of the server itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemDifferences {
    /// Name of the source.
    pub source: String,
    /// Kind and name of the item. `None` for the server itself.
    pub item: Option<(LockedKind, String)>,
    /// The differences.
    pub differences: Vec<Difference>,
}

impl ItemDifferences {
    /// Returns the worst severity.
    pub fn severity(&self) -> DifferenceSeverity {
        DifferenceSeverity::worst(&self.differences).unwrap_or(DifferenceSeverity::Note)
    }

    /// Returns `source:name`, or the name of the source for the server itself.
    pub fn id(&self) -> String {
        match &self.item {
            Some((_, name)) => format!("{}:{name}", self.source),
            None => self.source.clone(),
        }
    }
}

/// Compares two states of a server. Returns what differs, the server itself first.
pub fn compare_servers(source: &str, before: &LockedServer, after: &LockedServer) -> Vec<ItemDifferences> {
    let mut all = Vec::new();
    let mut add = |item: Option<(LockedKind, String)>, differences: Vec<Difference>| {
        if !differences.is_empty() {
            all.push(ItemDifferences { source: source.to_owned(), item, differences });
        }
    };
    let mut own = compare_packages(before.package.as_ref(), after.package.as_ref());
    let (old, new) = (&before.identity, &after.identity);
    for (path, old, new) in [
        ("name", &old.name, &new.name),
        ("version", &old.version, &new.version),
        ("era", &old.era, &new.era),
        ("protocol", &old.protocol, &new.protocol),
    ] {
        if old != new {
            let difference = Difference::new(
                format!("server/{path}"),
                DifferenceKind::ServerChanged,
                Some(&json!(old)),
                Some(&json!(new)),
            );
            own.push(difference);
        }
    }
    own.extend(compare_instructions(old.instructions.as_deref(), new.instructions.as_deref()));
    add(None, own);
    let lists: [(LockedKind, &LockedItems, &LockedItems); 3] = [
        (LockedKind::Tool, &before.tools, &after.tools),
        (LockedKind::Prompt, &before.prompts, &after.prompts),
        (LockedKind::Template, &before.templates, &after.templates),
    ];
    for (kind, before, after) in lists {
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            if old.map(|it| &it.hash) == new.map(|it| &it.hash) {
                continue;
            }
            let (old, new) = (old.map(|it| &it.definition), new.map(|it| &it.definition));
            let found =
                if kind == LockedKind::Tool { compare_tools(old, new) } else { compare_items(old, new) };
            add(Some((kind, name.clone())), found);
        }
    }
    all
}

fn compare_packages(before: Option<&LockedPackage>, after: Option<&LockedPackage>) -> Vec<Difference> {
    let mut found = Vec::new();
    let (Some(old), Some(new)) = (before, after) else {
        if before.is_some() != after.is_some() {
            found.push(Difference::new("package", DifferenceKind::IntegrityChanged, None, None));
        }
        return found;
    };
    let mut add = |path: &str, kind, old: Value, new: Value| {
        if old != new {
            found.push(Difference::new(path, kind, Some(&old), Some(&new)));
        }
    };
    add("package/type", DifferenceKind::IntegrityChanged, json!(old.kind.as_str()), json!(new.kind.as_str()));
    add("package/spec", DifferenceKind::VersionChanged, json!(old.spec), json!(new.spec));
    add("package/version", DifferenceKind::VersionChanged, json!(old.version), json!(new.version));
    // A new version has other content by nature; the same version must not.
    let kind = match old.version == new.version {
        true => DifferenceKind::IntegrityChanged,
        false => DifferenceKind::VersionChanged,
    };
    let common = old.integrity.iter().filter_map(|(tag, hash)| Some((hash, new.integrity.get(tag)?)));
    common.for_each(|(old, new)| add("package/integrity", kind, json!(old), json!(new)));
    match old.integrity.is_empty() || new.integrity.is_empty() {
        true => {
            add(
                "package/integrity",
                DifferenceKind::VersionChanged,
                json!(old.integrity),
                json!(new.integrity),
            );
        }
        // The package of another platform joins the lock.
        false => new.integrity.iter().filter(|(tag, _)| !old.integrity.contains_key(*tag)).for_each(|it| {
            let path = format!("package/integrity/{}", it.0);
            add(&path, DifferenceKind::VersionChanged, Value::Null, json!(it.1));
        }),
    }
    let dependencies =
        |it: &LockedPackage| json!({ "pins": it.dependencies.pins, "hash": it.dependencies.hash });
    let (old, new) = (dependencies(old), dependencies(new));
    add("package/dependencies", DifferenceKind::DependenciesChanged, old, new);
    found
}
