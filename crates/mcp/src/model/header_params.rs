//! Arguments that a tool's schema wants repeated in HTTP headers (`x-mcp-header`).

use crate::Raw;
use serde_json::Value;
use std::collections::HashSet;

const ANNOTATION: &str = "x-mcp-header";

/// Maps argument paths to header names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeaderParams(Vec<(Vec<String>, String)>);

impl HeaderParams {
    /// Reads the annotations of a schema, or returns why they are invalid.
    pub(super) fn of(schema: &Raw) -> Result<HeaderParams, String> {
        if memchr::memmem::find(schema.as_bytes(), ANNOTATION.as_bytes()).is_none() {
            return Ok(HeaderParams::default());
        }
        let schema: Value = schema.decode().map_err(|_| "the schema cannot be read".to_owned())?;
        let mut found = Vec::new();
        collect(&schema, Some(&[]), &mut found)?;
        let mut seen = HashSet::new();
        if let Some((_, twice)) = found.iter().find(|(_, header)| !seen.insert(header.to_ascii_lowercase())) {
            return Err(format!("`{ANNOTATION}` names `{twice}` twice"));
        }
        Ok(HeaderParams(found))
    }

    /// Returns the headers for the arguments of a call.
    pub(super) fn values(&self, arguments: &Raw) -> Vec<(String, String)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let value = |path: &[String]| {
            let argument = path.iter().try_fold(arguments.clone(), |at, key| at.member(key))?;
            match argument.as_bytes().first()? {
                b'"' => argument.decode().ok(),
                b'{' | b'[' => None,
                // Copied verbatim: a number may have more digits than a Rust number type can hold.
                _ => Some(argument.as_str().to_owned()),
            }
        };
        self.0.iter().filter_map(|(path, header)| Some((header.clone(), value(path)?))).collect()
    }
}

/// Walks a schema. `path` is the path of the argument that it describes; `None` once anything but `properties` was
/// descended into.
fn collect(
    schema: &Value,
    path: Option<&[String]>,
    found: &mut Vec<(Vec<String>, String)>,
) -> Result<(), String> {
    match schema {
        Value::Object(members) => {
            if let Some(annotation) = members.get(ANNOTATION) {
                let path = path.filter(|path| !path.is_empty());
                let path = path.ok_or_else(|| format!("`{ANNOTATION}` is not inside an argument"))?;
                found.push((path.to_vec(), header_name(annotation, schema)?));
            }
            for (key, member) in members {
                match (key.as_str(), path, member) {
                    ("properties", Some(path), Value::Object(properties)) => {
                        for (name, property) in properties {
                            let path = [path, std::slice::from_ref(name)].concat();
                            collect(property, Some(&path), found)?;
                        }
                    }
                    _ => collect(member, None, found)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, None, found)),
        _ => Ok(()),
    }
}

fn header_name(annotation: &Value, schema: &Value) -> Result<String, String> {
    let name = annotation.as_str().unwrap_or_default();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(format!("`{ANNOTATION}` is not a header name"));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name.to_owned()),
        _ => Err(format!("`{ANNOTATION}` annotates an argument that is not a string, integer or boolean")),
    }
}
