//! Replaces references in arguments by the results that they stand for. Arguments without references keep their bytes.
//!
//! Only the caller's arguments are searched, once: what a result contains is data, also if it looks like a reference.

mod placed_schema;

use super::{
    Document, PassedResult, StoredResult,
    document::Part,
    reference::{ESCAPED_KEY, RESULT_KEY, ResultReference},
};
use memchr::memmem;
use placed_schema::PlacedSchema;
use serde_json::{Value, value::RawValue};
use std::collections::HashMap;
use wharf_config::PassRule;
use wharf_mcp::{Members, Raw};

/// Maximum depth at which references are found.
const MAX_DEPTH: usize = 32;
/// Maximum number of references in the arguments of one call.
const MAX_REFERENCES: usize = 32;
/// Maximum size of everything that is passed to one call, in bytes.
const MAX_PASSED_BYTES: usize = 4 << 20;

/// Reason why a reference cannot be replaced, with the JSON Pointer of the argument.
#[derive(Debug, PartialEq, Eq)]
pub struct SubstitutionError {
    /// JSON Pointer of the argument.
    pub pointer: String,
    /// Reason, for the caller.
    pub message: String,
}

/// Replaces the references in the arguments of one call.
pub struct Substitutions<'a> {
    /// Source of the tool that is called.
    pub source: &'a str,
    /// Which results may be passed.
    pub rule: PassRule,
    /// The results that the arguments refer to, by id.
    pub documents: &'a HashMap<String, (StoredResult, Document)>,
    /// The results that have been passed so far.
    pub passed: Vec<PassedResult>,
}

/// Returns whether arguments may contain a reference. It is a byte search, because most contain none.
pub fn may_contain_references(arguments: &Raw) -> bool {
    let bytes = arguments.as_bytes();
    memmem::find(bytes, b"wharf:").is_some() || memmem::find(bytes, RESULT_KEY.as_bytes()).is_some()
}

/// Returns the ids that arguments refer to.
pub fn referenced_ids(arguments: &Raw) -> Result<Vec<String>, SubstitutionError> {
    let mut ids = Vec::new();
    if let Ok(value) = arguments.decode::<&RawValue>() {
        collect(value, MAX_DEPTH, &mut ids);
    }
    if ids.len() > MAX_REFERENCES {
        let message = format!("more than {MAX_REFERENCES} results in one call");
        return Err(SubstitutionError { pointer: String::new(), message });
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

fn collect(value: &RawValue, depth: usize, ids: &mut Vec<String>) {
    if let Some(reference) = ResultReference::of(value) {
        return ids.push(reference.id);
    }
    if depth == 0 {
        return;
    }
    match value.get().as_bytes().first() {
        Some(b'{') => {
            let members: Members<'_> = serde_json::from_str(value.get()).unwrap_or_default();
            members.0.iter().for_each(|(_, value)| collect(value, depth - 1, ids));
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
            items.into_iter().for_each(|value| collect(value, depth - 1, ids));
        }
        _ => {}
    }
}

impl Substitutions<'_> {
    /// Returns the arguments with the results in place of the references, or `None` if there is nothing to replace.
    pub fn apply(&mut self, arguments: &Raw, schema: &Value) -> Result<Option<Raw>, SubstitutionError> {
        let Ok(value) = arguments.decode::<&RawValue>() else { return Ok(None) };
        let replaced = self.replace(value, PlacedSchema::of_arguments(schema), "", MAX_DEPTH)?;
        Ok(replaced.and_then(|it| Raw::parse(it).ok()))
    }

    /// Returns the new text of a value, or `None` if it stays as it is.
    fn replace(
        &mut self,
        value: &RawValue,
        schema: PlacedSchema<'_>,
        path: &str,
        depth: usize,
    ) -> Result<Option<String>, SubstitutionError> {
        if let Some(reference) = ResultReference::of(value) {
            return self.resolve(&reference, schema, path);
        }
        if depth == 0 {
            return Ok(None);
        }
        match value.get().as_bytes().first() {
            Some(b'{') => self.replace_members(value, schema, path, depth),
            Some(b'[') => self.replace_items(value, schema, path, depth),
            _ => Ok(None),
        }
    }

    fn replace_members(
        &mut self,
        value: &RawValue,
        schema: PlacedSchema<'_>,
        path: &str,
        depth: usize,
    ) -> Result<Option<String>, SubstitutionError> {
        let members: Members<'_> = serde_json::from_str(value.get()).unwrap_or_default();
        let (mut is_changed, mut texts) = (false, Vec::with_capacity(members.0.len()));
        for (name, value) in &members.0 {
            let inner = schema.member(name);
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            let replaced = self.replace(value, inner, &path, depth - 1)?;
            let is_escaped = name == ESCAPED_KEY;
            let name = if is_escaped { RESULT_KEY } else { &**name };
            is_changed |= is_escaped || replaced.is_some();
            let text = replaced.unwrap_or_else(|| value.get().to_owned());
            texts.push(format!("{}:{text}", Value::from(name)));
        }
        Ok(is_changed.then(|| format!("{{{}}}", texts.join(","))))
    }

    fn replace_items(
        &mut self,
        value: &RawValue,
        schema: PlacedSchema<'_>,
        path: &str,
        depth: usize,
    ) -> Result<Option<String>, SubstitutionError> {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        let (mut is_changed, mut texts) = (false, Vec::with_capacity(items.len()));
        let inner = schema.items();
        for (at, value) in items.into_iter().enumerate() {
            let replaced = self.replace(value, inner, &format!("{path}/{at}"), depth - 1)?;
            is_changed |= replaced.is_some();
            texts.push(replaced.unwrap_or_else(|| value.get().to_owned()));
        }
        Ok(is_changed.then(|| format!("[{}]", texts.join(","))))
    }

    fn resolve(
        &mut self,
        reference: &ResultReference,
        schema: PlacedSchema<'_>,
        path: &str,
    ) -> Result<Option<String>, SubstitutionError> {
        let error = |message: String| Err(SubstitutionError { pointer: path.to_owned(), message });
        if self.rule == PassRule::Off && !reference.is_object {
            return Ok(None);
        }
        let Some((stored, document)) = self.documents.get(&reference.id) else {
            return error(format!("{reference} does not exist"));
        };
        match self.rule {
            PassRule::Off => return error("passing results to this tool is switched off".to_owned()),
            PassRule::SameSource if stored.source != self.source => {
                return error(format!("only results of `{}` may be passed to this tool", self.source));
            }
            PassRule::SameSource | PassRule::Any => {}
        }
        let Some(part) = document.part(&reference.pointer) else {
            return error(format!("{reference} does not exist"));
        };
        let text = match part {
            Part::Text(text) => Value::from(text).to_string(),
            Part::Json(value) if wants_string(schema, value) => Value::from(value.get()).to_string(),
            Part::Json(value) => value.get().to_owned(),
        };
        let (id, pointer) = (reference.id.clone(), reference.pointer.clone());
        self.passed.push(PassedResult { id, pointer, bytes: text.len() });
        if self.passed.iter().map(|it| it.bytes).sum::<usize>() > MAX_PASSED_BYTES {
            return error(format!("more than {MAX_PASSED_BYTES} bytes of results in one call"));
        }
        Ok(Some(text))
    }
}

/// Returns whether the schema wants a string where the value is none, so that its JSON text is passed.
fn wants_string(schema: PlacedSchema<'_>, value: &RawValue) -> bool {
    !value.get().starts_with('"') && schema.is_string()
}

#[cfg(test)]
mod tests;
