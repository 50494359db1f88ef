//! Compares two JSON Schemas whose local references have been replaced.
//!
//! A difference is called compatible only if every value that the old schema accepts fits the new one. So this looks into
//! `properties` and `items` only; a change anywhere else is a changed schema, which a person should read.

use super::{
    compare::{changed_members, compare_text},
    difference::{Difference, DifferenceKind as Kind},
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Whether a schema describes arguments or results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Arguments: a stricter schema breaks callers.
    Input,
    /// Results: fewer fields break callers.
    Output,
}

/// Keywords that limit from below, and from above.
const MINIMA: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
const MAXIMA: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/// Compares two schemas of arguments or of results.
pub(super) fn compare_schemas(
    direction: Direction,
    before: &Value,
    after: &Value,
    found: &mut Vec<Difference>,
) {
    let path = if direction == Direction::Input { "" } else { "result:" };
    SchemaComparison { direction, found }.schema(path, before, after);
}

struct SchemaComparison<'a> {
    direction: Direction,
    found: &'a mut Vec<Difference>,
}

impl SchemaComparison<'_> {
    fn schema(&mut self, path: &str, before: &Value, after: &Value) {
        let (Value::Object(old), Value::Object(new)) = (before, after) else {
            if before != after {
                self.add(path, Kind::SchemaChanged, Some(before), Some(after));
            }
            return;
        };
        for (key, before, after) in changed_members(old, new) {
            match key {
                "properties" => self.properties(path, (before, old), (after, new)),
                "required" => self.required(path, old, new),
                "type" => self.types(path, before, after),
                "enum" => self.values(path, before, after),
                "default" => self.add(path, Kind::DefaultChanged, before, after),
                "title" | "description" => compare_text(&format!("{path}/{key}"), before, after, self.found),
                "items" => match (before, after) {
                    (Some(before), Some(after)) => self.schema(&format!("{path}/*"), before, after),
                    _ => self.add(path, Kind::SchemaChanged, before, after),
                },
                key if MINIMA.contains(&key) => self.bound(path, before, after, false),
                key if MAXIMA.contains(&key) => self.bound(path, before, after, true),
                key => self.add(&format!("{path}/{key}"), Kind::SchemaChanged, before, after),
            }
        }
    }

    fn properties(
        &mut self,
        path: &str,
        (before, old): (Option<&Value>, &Map<String, Value>),
        (after, new): (Option<&Value>, &Map<String, Value>),
    ) {
        let empty = Map::new();
        let before = before.and_then(Value::as_object).unwrap_or(&empty);
        let after = after.and_then(Value::as_object).unwrap_or(&empty);
        let is_input = self.direction == Direction::Input;
        for (name, before, after) in changed_members(before, after) {
            let path = format!("{path}/{name}");
            match (before, after) {
                (Some(before), Some(after)) => self.schema(&path, before, after),
                (None, Some(after)) if !is_input => self.add(&path, Kind::OutputAdded, None, Some(after)),
                (Some(before), None) if !is_input => self.add(&path, Kind::OutputRemoved, Some(before), None),
                // A new required argument is reported with the required ones.
                (None, Some(_)) if requires(new, name) && !requires(old, name) => {}
                (None, Some(after)) => self.add(&path, Kind::ArgumentAdded, None, Some(after)),
                (before, _) => self.add(&path, Kind::ArgumentRemoved, before, None),
            }
        }
    }

    fn required(&mut self, path: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let (before, after) = (required_names(old), required_names(new));
        let property = |schema: &Map<String, Value>, name: &str| schema.get("properties")?.get(name).cloned();
        let is_input = self.direction == Direction::Input;
        for name in after.difference(&before) {
            let path = format!("{path}/{name}");
            let kind = if is_input { Kind::RequiredArgumentAdded } else { Kind::OutputAdded };
            self.add(&path, kind, property(old, name).as_ref(), property(new, name).as_ref());
        }
        for name in before.difference(&after) {
            // If the argument itself is gone, that is reported already.
            let is_gone = property(old, name).is_some() && property(new, name).is_none();
            let kind = if is_input { Kind::BoundLoosened } else { Kind::OutputRemoved };
            if !is_gone {
                self.add(&format!("{path}/{name}"), kind, None, None);
            }
        }
        if before == after {
            // The list is malformed, or has another order.
            self.add(
                &format!("{path}/required"),
                Kind::SchemaChanged,
                old.get("required"),
                new.get("required"),
            );
        }
    }

    fn types(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>) {
        let (Some(old), Some(new)) = (type_names(before), type_names(after)) else {
            return self.add(path, Kind::SchemaChanged, before, after);
        };
        let includes = |all: &BTreeSet<&str>, part: &BTreeSet<&str>| {
            part.iter().all(|it| all.contains(it) || *it == "integer" && all.contains("number"))
        };
        let kind = match (self.direction, includes(&new, &old)) {
            (Direction::Output, _) => Kind::SchemaChanged,
            (Direction::Input, true) => Kind::TypeLoosened,
            (Direction::Input, false) => Kind::TypeTightened,
        };
        self.add(path, kind, before, after);
    }

    fn values(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>) {
        let list = |it: Option<&Value>| it.and_then(Value::as_array).cloned();
        if self.direction == Direction::Output {
            return self.add(path, Kind::SchemaChanged, before, after);
        }
        match (list(before), list(after)) {
            (Some(old), Some(new)) => {
                let start = self.found.len();
                for value in old.iter().filter(|it| !new.contains(it)) {
                    self.add(path, Kind::EnumValueRemoved, Some(value), None);
                }
                for value in new.iter().filter(|it| !old.contains(it)) {
                    self.add(path, Kind::EnumValueAdded, None, Some(value));
                }
                if self.found.len() == start {
                    self.add(path, Kind::SchemaChanged, before, after);
                }
            }
            (None, Some(_)) if before.is_none() => self.add(path, Kind::EnumValueRemoved, None, after),
            (Some(_), None) if after.is_none() => self.add(path, Kind::EnumValueAdded, before, None),
            _ => self.add(path, Kind::SchemaChanged, before, after),
        }
    }

    fn bound(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>, is_maximum: bool) {
        let is_looser = match (before.map(Value::as_f64), after.map(Value::as_f64)) {
            (Some(Some(_)), None) => Some(true),
            (None, Some(Some(_))) => Some(false),
            (Some(Some(old)), Some(Some(new))) => Some((new > old) == is_maximum),
            // A bound that is not a number has another meaning in older drafts.
            _ => None,
        };
        let kind = match (self.direction, is_looser) {
            (Direction::Output, _) | (_, None) => Kind::SchemaChanged,
            (Direction::Input, Some(true)) => Kind::BoundLoosened,
            (Direction::Input, Some(false)) => Kind::BoundTightened,
        };
        self.add(path, kind, before, after);
    }

    fn add(&mut self, path: &str, kind: Kind, before: Option<&Value>, after: Option<&Value>) {
        self.found.push(Difference::new(path, kind, before, after));
    }
}

fn requires(schema: &Map<String, Value>, name: &str) -> bool {
    required_names(schema).contains(name)
}

fn required_names(schema: &Map<String, Value>) -> BTreeSet<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// Returns the types that a schema accepts. `None` if they are malformed.
fn type_names(value: Option<&Value>) -> Option<BTreeSet<&str>> {
    const ALL: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];
    match value {
        None => Some(ALL.into()),
        Some(Value::String(name)) => Some([name.as_str()].into()),
        Some(Value::Array(names)) => names.iter().map(Value::as_str).collect(),
        Some(_) => None,
    }
}
