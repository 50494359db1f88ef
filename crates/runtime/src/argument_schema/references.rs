//! Resolves local references: `#` and `#/…`. Everything else stays unresolved, and nothing is ever fetched.

use serde_json::Value;

/// Version of JSON Schema that a schema declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// 2019-09 or 2020-12, or not declared.
    Current,
    /// Draft-07 or older, where `$ref` disables all keywords beside it.
    Draft07,
    /// An unsupported dialect.
    Unsupported,
}

impl Dialect {
    pub(super) fn of(schema: &Value) -> Dialect {
        match schema.get("$schema").and_then(Value::as_str) {
            None => Dialect::Current,
            Some(declared) if !declared.contains("json-schema.org/") => Dialect::Unsupported,
            Some(declared) if declared.contains("/draft-0") => Dialect::Draft07,
            Some(_) => Dialect::Current,
        }
    }
}

/// Returns whether a schema has its own base URI. A local reference inside it does not refer to the whole document.
pub(super) fn has_own_base(schema: &Value) -> bool {
    schema.get("$id").is_some_and(Value::is_string)
}

/// Returns the subschema that a local reference names. `None` if the reference is not local, if its target does not
/// exist, or if the target is inside a schema with its own base URI.
pub(super) fn resolve<'v>(root: &'v Value, reference: &str) -> Option<&'v Value> {
    let pointer = reference.strip_prefix('#')?;
    if !pointer.is_empty() && !pointer.starts_with('/') || pointer.contains('%') {
        return None;
    }
    let has_base = |end: usize| root.pointer(&pointer[..end]).is_some_and(has_own_base);
    let crosses_base = pointer.match_indices('/').skip(1).any(|(end, _)| has_base(end));
    if crosses_base { None } else { root.pointer(pointer) }
}
