//! References to stored results in arguments: a string that is exactly a URI, or an object with `$result`.

use serde_json::value::RawValue;
use wharf_mcp::Members;

/// Beginning of the URI of a stored result.
pub const URI_PREFIX: &str = "wharf://results/";
/// Member that names a result.
pub(super) const RESULT_KEY: &str = "$result";
/// Member that stands for a member `$result` of the caller's own.
pub(super) const ESCAPED_KEY: &str = "$$result";
/// Maximum length of an id, in bytes.
const MAX_ID_BYTES: usize = 64;

/// ResultReference to a stored result, or to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultReference {
    /// The id, as written.
    pub id: String,
    /// JSON Pointer; empty for the whole document.
    pub pointer: String,
    /// Whether it is an object, which means a result and nothing else.
    pub(super) is_object: bool,
}

impl ResultReference {
    /// Reads a URI such as `wharf://results/r-3#/items/0`.
    pub fn parse(uri: &str) -> Option<ResultReference> {
        let rest = uri.strip_prefix(URI_PREFIX)?;
        let (id, pointer) = rest.split_once('#').unwrap_or((rest, ""));
        ResultReference::new(id, pointer, false)
    }

    /// Reads a value, if it is a reference.
    pub(super) fn of(value: &RawValue) -> Option<ResultReference> {
        let text = value.get();
        match text.as_bytes().first()? {
            // A JSON library may escape the slashes.
            b'"' if text.starts_with("\"wharf:") => {
                ResultReference::parse(&serde_json::from_str::<String>(text).ok()?)
            }
            b'{' if text.contains(RESULT_KEY) => {
                let members: Members<'_> = serde_json::from_str(text).ok()?;
                let is_known = |it: &str| matches!(it, RESULT_KEY | "pointer");
                let read = |name| serde_json::from_str::<String>(members.get(name)?.get()).ok();
                let pointer = match members.get("pointer") {
                    Some(_) => read("pointer")?,
                    None => String::new(),
                };
                let id = read(RESULT_KEY).filter(|_| members.0.iter().all(|(name, _)| is_known(name)))?;
                ResultReference::new(&id, &pointer, true)
            }
            _ => None,
        }
    }

    fn new(id: &str, pointer: &str, is_object: bool) -> Option<ResultReference> {
        let is_id = (1..=MAX_ID_BYTES).contains(&id.len())
            && id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        is_id.then(|| ResultReference { id: id.to_owned(), pointer: pointer.to_owned(), is_object })
    }
}

impl std::fmt::Display for ResultReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hash = if self.pointer.is_empty() { "" } else { "#" };
        write!(f, "{URI_PREFIX}{}{hash}{}", self.id, self.pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_string_or_a_whole_object_is_a_reference() {
        for (json, expected) in [
            (r#""wharf://results/r-3""#, Some(("r-3", "", false))),
            (r#""wharf:\/\/results\/r-3#\/a""#, Some(("r-3", "/a", false))),
            (r#"{"$result":"r-3"}"#, Some(("r-3", "", true))),
            (r#"{"pointer":"/a","$result":"r-3"}"#, Some(("r-3", "/a", true))),
            (r#""see wharf://results/r-3""#, None),
            (r#""wharf://results/r-3 ""#, None),
            (r#""wharf://results/""#, None),
            (r#""wharf://results/../x""#, None),
            (r#"{"$result":"r-3","more":1}"#, None),
            (r#"{"$result":3}"#, None),
            (r#"{"$$result":"r-3"}"#, None),
            ("[]", None),
        ] {
            let value: &RawValue = serde_json::from_str(json).expect("JSON");
            let found = ResultReference::of(value);
            let found = found.as_ref().map(|it| (it.id.as_str(), it.pointer.as_str(), it.is_object));
            assert_eq!(found, expected, "{json}");
        }
    }
}
