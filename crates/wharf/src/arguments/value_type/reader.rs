//! Reads the type of a value from a JSON Schema. Follows references and alternatives, and reads enums.

use super::{Alternative, Limits, ValueType};
use serde_json::{Map, Value};

/// Maximum number of schemas to read per tool, because references and alternatives can multiply.
const MAX_SCHEMAS: usize = 2_000;

/// Maximum nesting depth of schemas and references.
const MAX_DEPTH: usize = 12;

/// Reads the schemas of one document.
pub(in crate::arguments) struct SchemaReader<'a> {
    root: &'a Value,
    remaining: usize,
}

impl<'a> SchemaReader<'a> {
    pub(in crate::arguments) fn new(root: &'a Value) -> SchemaReader<'a> {
        SchemaReader { root, remaining: MAX_SCHEMAS }
    }

    pub(in crate::arguments) fn read(&mut self, schema: &'a Value) -> ValueType {
        ValueType { alternatives: self.alternatives(schema, 0) }
    }

    /// Follows the references of a schema and returns their target, or the schema itself.
    pub(in crate::arguments) fn resolve(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..MAX_DEPTH {
            let target = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
            match target.and_then(|it| self.root.pointer(it)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    fn alternatives(&mut self, schema: &'a Value, depth: usize) -> Vec<Alternative> {
        let schema = self.resolve(schema);
        let Some(schema) = schema.as_object().filter(|_| depth < MAX_DEPTH && self.remaining > 0) else {
            return vec![Alternative::Unknown];
        };
        self.remaining -= 1;
        let mut found = self.read_object(schema, depth);
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            found.retain(|it| *it != Alternative::Null);
            found.push(Alternative::Null);
        }
        found
    }

    fn read_object(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Vec<Alternative> {
        if let Some(value) = schema.get("const") {
            return vec![Alternative::Literal(value.clone())];
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values.iter().cloned().map(Alternative::Literal).collect();
        }
        let own = self.own_types(schema, depth);
        for key in ["anyOf", "oneOf"] {
            let members = schema.get(key).and_then(Value::as_array).filter(|it| !it.is_empty());
            let Some(members) = members else { continue };
            let found = self.union(members, depth);
            // These alternatives only add constraints to the schema's own type.
            return if found.contains(&Alternative::Unknown) && !own.is_empty() { own } else { found };
        }
        if !own.is_empty() {
            return own;
        }
        let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let mut parts = all.map(|it| self.alternatives(it, depth + 1));
        parts.find(|it| !it.contains(&Alternative::Unknown)).unwrap_or_else(|| vec![Alternative::Unknown])
    }

    /// Returns the alternatives of all these schemas, without duplicates.
    fn union(&mut self, schemas: &'a [Value], depth: usize) -> Vec<Alternative> {
        let mut all = Vec::new();
        for schema in schemas {
            for alternative in self.alternatives(schema, depth + 1) {
                if !all.contains(&alternative) {
                    all.push(alternative);
                }
            }
        }
        all
    }

    /// Returns the types that the schema itself declares.
    fn own_types(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Vec<Alternative> {
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ if schema.contains_key("properties") => vec!["object"],
            _ if schema.contains_key("items") => vec!["array"],
            _ => Vec::new(),
        };
        let types = names.into_iter().map(|name| match name {
            "string" => Alternative::Text,
            "integer" => Alternative::Integer(Limits::of(schema)),
            "number" => Alternative::Number(Limits::of(schema)),
            "boolean" => Alternative::Boolean,
            "null" => Alternative::Null,
            "object" => Alternative::Object,
            "array" => Alternative::Array(ValueType {
                alternatives: match schema.get("items") {
                    Some(items) => self.alternatives(items, depth + 1),
                    None => vec![Alternative::Unknown],
                },
            }),
            _ => Alternative::Unknown,
        });
        types.collect()
    }
}
