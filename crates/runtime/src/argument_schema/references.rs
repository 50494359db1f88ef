//! Indexes the parts of a schema that `$ref` can refer to. All of them are inside the one document.

use super::messages;
use serde_json::{Map, Value};
use std::collections::HashMap;
use url::Url;

/// Base URI of a document without `$id`.
const DEFAULT_BASE_URI: &str = "schema:///";

/// Maximum length of an `$id` in bytes, and maximum number of them in one schema.
const MAX_ID_BYTES: usize = 1024;
const MAX_DOCUMENTS: usize = 1000;

/// Keywords whose value is a schema, a list of schemas, or a map of schemas.
const SCHEMA_KEYWORDS: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const SCHEMA_LIST_KEYWORDS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
const SCHEMA_MAP_KEYWORDS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Version of JSON Schema that a schema uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Not specified: 2020-12, with the spellings of draft-07.
    Unspecified,
    /// Draft-07 or older.
    Draft07,
    Draft2019,
    Draft2020,
    /// An unsupported dialect.
    Unsupported,
}

impl Dialect {
    pub(super) fn of(schema: &Value) -> Dialect {
        let Some(declared) = schema.get("$schema").and_then(Value::as_str) else {
            return Dialect::Unspecified;
        };
        let is = |names: &[&str]| names.iter().any(|name| declared.contains(name));
        match () {
            () if !declared.contains("json-schema.org/") => Dialect::Unsupported,
            () if is(&["draft-04", "draft-05", "draft-06", "draft-07"]) => Dialect::Draft07,
            () if is(&["2019-09"]) => Dialect::Draft2019,
            () if is(&["2020-12", "json-schema.org/schema"]) => Dialect::Draft2020,
            () => Dialect::Unsupported,
        }
    }
}

/// A subschema, with the embedded document that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subschema<'v> {
    pub(super) value: &'v Value,
    document: usize,
}

/// Everything that a reference can name.
#[derive(Debug)]
pub(super) struct ReferenceIndex<'v> {
    pub(super) dialect: Dialect,
    documents: Vec<(Url, &'v Value)>,
    by_address: HashMap<String, usize>,
    /// Values that begin an embedded document.
    document_starts: HashMap<*const Value, usize>,
    anchors: HashMap<(usize, String), &'v Value>,
}

impl<'v> ReferenceIndex<'v> {
    /// Indexes a schema. Fails if it refers to anything outside.
    pub(super) fn of(root: &'v Value) -> Result<ReferenceIndex<'v>, String> {
        let base = Url::parse(DEFAULT_BASE_URI).map_err(|error| error.to_string())?;
        let mut index = ReferenceIndex {
            dialect: Dialect::of(root),
            documents: vec![(base.clone(), root)],
            by_address: HashMap::from([(base.into(), 0)]),
            document_starts: HashMap::new(),
            anchors: HashMap::new(),
        };
        let mut left = vec![index.root()];
        let mut references = Vec::new();
        while let Some(Subschema { value, document }) = left.pop() {
            let Value::Object(schema) = value else { continue };
            let document = index.register_ids(value, schema, document)?;
            if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
                references.push((reference, document));
            }
            left.extend(children(schema).map(|value| Subschema { value, document }));
        }
        for (reference, document) in references {
            index.resolve(reference, Subschema { value: root, document })?;
        }
        Ok(index)
    }

    pub(super) fn root(&self) -> Subschema<'v> {
        self.in_own_document(Subschema { value: self.documents[0].1, document: 0 })
    }

    /// Returns the position of a schema nested in another one.
    pub(super) fn within(&self, subschema: Subschema<'v>, value: &'v Value) -> Subschema<'v> {
        self.in_own_document(Subschema { value, ..subschema })
    }

    /// Resolves a reference. `Ok(None)` if the target does not exist, an error if it is outside the document.
    pub(super) fn resolve(
        &self,
        reference: &str,
        from: Subschema<'v>,
    ) -> Result<Option<Subschema<'v>>, String> {
        let (document, fragment) = match reference.strip_prefix('#') {
            Some(fragment) => (from.document, fragment.to_owned()),
            None => {
                let Ok(mut address) = self.documents[from.document].0.join(reference) else {
                    return Ok(None);
                };
                let fragment = address.fragment().unwrap_or_default().to_owned();
                address.set_fragment(None);
                let known = self.by_address.get(address.as_str());
                (*known.ok_or_else(|| outside_reference(reference))?, fragment)
            }
        };
        let root = Subschema { value: self.documents[document].1, document };
        let Some(fragment) = percent_decoded(&fragment) else { return Ok(None) };
        if fragment.is_empty() {
            return Ok(Some(root));
        }
        Ok(match fragment.strip_prefix('/') {
            Some(pointer) => pointer.split('/').try_fold(root, |subschema, step| self.step(subschema, step)),
            None => self
                .anchors
                .get(&(document, fragment))
                .map(|value| self.in_own_document(Subschema { value, document })),
        })
    }

    fn step(&self, subschema: Subschema<'v>, step: &str) -> Option<Subschema<'v>> {
        let step = step.replace("~1", "/").replace("~0", "~");
        let value = match subschema.value {
            Value::Object(members) => members.get(&step)?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
        Some(self.within(subschema, value))
    }

    /// Assigns a value that begins an embedded document to that document.
    fn in_own_document(&self, subschema: Subschema<'v>) -> Subschema<'v> {
        let document = self
            .document_starts
            .get(&std::ptr::from_ref(subschema.value))
            .copied()
            .unwrap_or(subschema.document);
        Subschema { document, ..subschema }
    }

    /// Records the identifiers of a schema. Returns the document that its contents belong to.
    fn register_ids(
        &mut self,
        value: &'v Value,
        schema: &'v Map<String, Value>,
        document: usize,
    ) -> Result<usize, String> {
        let is_old = matches!(self.dialect, Dialect::Draft07 | Dialect::Unspecified);
        let mut document = document;
        // Before 2019-09, `$ref` disables all keywords beside it.
        if !(self.dialect == Dialect::Draft07 && schema.contains_key("$ref")) {
            match schema.get("$id").and_then(Value::as_str) {
                Some(id) if is_old && id.len() > 1 && id.starts_with('#') => {
                    self.anchors.insert((document, id[1..].to_owned()), value);
                }
                Some(id) => document = self.begin_document(value, id, document)?,
                None => {}
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                self.anchors.insert((document, name.to_owned()), value);
            }
        }
        Ok(document)
    }

    fn begin_document(&mut self, value: &'v Value, id: &str, document: usize) -> Result<usize, String> {
        // Each document keeps its whole URI, so many long ones would use a lot of memory.
        if id.len() > MAX_ID_BYTES || self.documents.len() > MAX_DOCUMENTS {
            return Err("the schema is too large: it has too many, or too long, values of `$id`".to_owned());
        }
        let Ok(mut address) = self.documents[document].0.join(id) else { return Ok(document) };
        address.set_fragment(None);
        let number = self.documents.len();
        self.by_address.insert(address.to_string(), number);
        self.documents.push((address, value));
        self.document_starts.insert(std::ptr::from_ref(value), number);
        Ok(number)
    }
}

fn children(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let single = SCHEMA_KEYWORDS.iter().filter_map(|name| schema.get(*name));
    let lists = SCHEMA_LIST_KEYWORDS.iter().filter_map(|name| schema.get(*name)?.as_array()).flatten();
    let maps =
        SCHEMA_MAP_KEYWORDS.iter().filter_map(|name| schema.get(*name)?.as_object()).flat_map(Map::values);
    single.chain(lists).chain(maps)
}

fn outside_reference(reference: &str) -> String {
    format!(
        "the schema refers to `{}`, which is not part of it and is not fetched",
        messages::shorten(reference)
    )
}

/// Decodes percent escapes.
fn percent_decoded(fragment: &str) -> Option<String> {
    let mut bytes = fragment.bytes();
    let mut plain = Vec::with_capacity(fragment.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
                digit(bytes.next()?)? << 4 | digit(bytes.next()?)?
            }
            byte => byte,
        });
    }
    String::from_utf8(plain).ok()
}
