//! Identifies a call by its tool and arguments, independent of their formatting.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the canonical JSON of a call, in lower-case hex.
pub(crate) fn call_digest(
    tool_id: &str,
    definition_hash: &str,
    arguments: &str,
    conversation_id: &str,
) -> String {
    // Numbers beyond double precision have no canonical form; such arguments are compared as written.
    let parsed: Value = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
    let call = serde_json::json!({
        "tool_id": tool_id, "definition_hash": definition_hash, "arguments": parsed,
        "conversation_id": conversation_id,
    });
    json_digest(&call)
}

/// Returns the SHA-256 of canonical JSON, in lower-case hex.
pub(crate) fn json_digest(value: &Value) -> String {
    let canonical = serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into());
    Sha256::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_and_order_of_keys_do_not_matter() {
        let digest = |arguments| call_digest("a:b", "h", arguments, "c");
        assert_eq!(digest(r#"{"a":1,"b":[true]}"#), digest(r#"{ "b": [ true ], "a": 1.0 }"#));
        assert_ne!(digest(r#"{"a":1}"#), digest(r#"{"a":2}"#));
        assert_ne!(digest("{}"), call_digest("a:b", "i", "{}", "c"));
        assert_ne!(digest("{}"), call_digest("a:b", "h", "{}", "d"));
    }
}
