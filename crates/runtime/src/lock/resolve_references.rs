//! Replaces local references in a schema by what they refer to, so that moving a definition is not a difference.

use serde_json::{Map, Value};

/// Maximum nesting of references. Deeper ones stay as they are.
const MAX_REFERENCE_DEPTH: usize = 16;

/// Maximum number of values that all references of a schema may produce.
const MAX_VALUES: usize = 100_000;

/// Returns the schema with every local reference replaced. A reference inside its own definition stays.
pub(super) fn resolve_references(schema: &Value) -> Value {
    let mut resolver = Resolver { root: schema, open: Vec::new(), values: 0 };
    let mut resolved = resolver.value(schema);
    if let (Value::Object(members), true) = (&mut resolved, resolver.values < MAX_VALUES) {
        // Definitions count where they are used. A recursive schema still refers to them, so its definitions stay.
        if !has_reference(members) {
            members.retain(|key, _| !matches!(key.as_str(), "$defs" | "definitions"));
        }
    }
    resolved
}

struct Resolver<'a> {
    root: &'a Value,
    /// The references that are being replaced.
    open: Vec<&'a str>,
    values: usize,
}

impl<'a> Resolver<'a> {
    fn value(&mut self, value: &'a Value) -> Value {
        self.values += 1;
        match value {
            _ if self.values > MAX_VALUES => value.clone(),
            Value::Array(items) => items.iter().map(|it| self.value(it)).collect(),
            Value::Object(members) => match self.target(members) {
                Some((reference, target)) => {
                    self.open.push(reference);
                    let mut resolved = self.value(target);
                    self.open.pop();
                    // Keywords beside a reference apply too.
                    if let Value::Object(resolved) = &mut resolved {
                        for (key, value) in members.iter().filter(|(key, _)| *key != "$ref") {
                            resolved.insert(key.clone(), self.value(value));
                        }
                    }
                    resolved
                }
                None => {
                    let members = members.iter().map(|(key, value)| (key.clone(), self.value(value)));
                    Value::Object(members.collect())
                }
            },
            other => other.clone(),
        }
    }

    /// Returns the local reference of a schema and its target, unless it must stay.
    fn target(&self, members: &'a Map<String, Value>) -> Option<(&'a str, &'a Value)> {
        let reference = members.get("$ref")?.as_str()?;
        let pointer = reference.strip_prefix('#').filter(|it| it.is_empty() || it.starts_with('/'))?;
        let target = self.root.pointer(pointer).filter(|it| it.is_object())?;
        let may_replace = self.open.len() < MAX_REFERENCE_DEPTH && !self.open.contains(&reference);
        may_replace.then_some((reference, target))
    }
}

fn has_reference(members: &Map<String, Value>) -> bool {
    fn any(value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(any),
            Value::Object(members) => members.contains_key("$ref") || members.values().any(any),
            _ => false,
        }
    }
    let used = members.iter().filter(|(key, _)| !matches!(key.as_str(), "$defs" | "definitions"));
    used.into_iter().any(|(key, value)| key == "$ref" || any(value))
}
