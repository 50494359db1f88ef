//! Finds what the schema of a tool says about one argument. Follows local references, and the alternatives of `anyOf` and
//! `oneOf`.

use serde_json::Value;
use std::collections::VecDeque;

/// Maximum number of schemas that are read for one argument, because references may lead back to themselves.
const MAX_SCHEMAS: usize = 64;

/// The schema of one argument, or of one value in it.
#[derive(Clone, Copy)]
pub(super) struct PlacedSchema<'a> {
    /// Schema of all arguments, in which references are found.
    root: &'a Value,
    schema: Option<&'a Value>,
}

impl<'a> PlacedSchema<'a> {
    /// Returns the schema of all arguments.
    pub(super) fn of_arguments(root: &'a Value) -> PlacedSchema<'a> {
        PlacedSchema { root, schema: Some(root) }
    }

    /// Returns the schema of a member.
    pub(super) fn member(self, name: &str) -> PlacedSchema<'a> {
        self.find(|it| it["properties"].get(name).or(it.get("additionalProperties")))
    }

    /// Returns the schema of the items of a list.
    pub(super) fn items(self) -> PlacedSchema<'a> {
        self.find(|it| it.get("items"))
    }

    /// Returns whether the value has to be a string, or a string or null.
    pub(super) fn is_string(self) -> bool {
        let alternatives = self.alternatives().unwrap_or_default();
        let kinds = || alternatives.iter().flat_map(|it| kinds(it));
        kinds().any(|it| it == "string") && kinds().all(|it| it == "string" || it == "null")
    }

    fn find(self, inner: impl Fn(&'a Value) -> Option<&'a Value>) -> PlacedSchema<'a> {
        let alternatives = self.alternatives().unwrap_or_default();
        PlacedSchema { schema: alternatives.into_iter().find_map(inner), ..self }
    }

    /// Returns the schemas that the value may fit, without references. `None` if there are too many.
    fn alternatives(self) -> Option<Vec<&'a Value>> {
        let mut waiting: VecDeque<&Value> = self.schema.into_iter().collect();
        let mut found = Vec::new();
        for _ in 0..MAX_SCHEMAS {
            let Some(schema) = waiting.pop_front() else { return Some(found) };
            let listed = ["anyOf", "oneOf"].into_iter().find_map(|it| schema.get(it)?.as_array());
            match (self.resolve(schema), listed) {
                _ if schema.get("type").is_some() => found.push(schema),
                (Some(target), _) => waiting.push_back(target),
                (None, Some(listed)) => waiting.extend(listed),
                (None, None) => found.push(schema),
            }
        }
        None
    }

    /// Returns the target of a local reference.
    fn resolve(self, schema: &Value) -> Option<&'a Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }
}

/// Returns the types that a schema allows. One that names none allows all of them, which is the empty name here.
fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().map(|it| it.as_str().unwrap_or_default()).collect(),
        kind => vec![kind.and_then(Value::as_str).unwrap_or_default()],
    }
}
