//! Reads arbitrary bytes as arguments with references to stored results.
//!
//! Arguments without references keep their bytes. Replaced arguments are JSON, and text of a result is never replaced, even
//! if it looks like a reference.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::{collections::HashMap, time::SystemTime};
use wharf_config::PassRule;
use wharf_mcp::Raw;
use wharf_runtime::result_handle::{
    Document, DocumentKind, ResultReference, StoredResult, Substitutions, may_contain_references,
    referenced_ids,
};

/// Text of the only stored result. It looks like a reference to itself.
const EVIL: &str = r#"{"a":"wharf://results/r-1","b":{"$result":"r-1"},"c":[1]}"#;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Some(reference) = ResultReference::parse(text) {
        assert_eq!(ResultReference::parse(&reference.to_string()).map(|it| it.id), Some(reference.id));
    }
    let Ok(arguments) = Raw::parse(text.to_owned()) else { return };
    let ids = referenced_ids(&arguments);
    let documents = documents();
    for rule in [PassRule::Any, PassRule::SameSource, PassRule::Off] {
        let mut substitutions =
            Substitutions { source: "a", rule, documents: &documents, passed: Vec::new() };
        let schema = json!({ "properties": { "text": { "type": "string" } } });
        let Ok(replaced) = substitutions.apply(&arguments, &schema) else { continue };
        if !may_contain_references(&arguments) {
            assert!(replaced.is_none() && substitutions.passed.is_empty());
        }
        if let Some(replaced) = replaced {
            serde_json::from_str::<Value>(replaced.as_str()).expect("it is JSON");
            let whole = substitutions.passed.iter().filter(|it| it.pointer.is_empty()).count();
            // Each whole result arrives with its references as they are, as JSON or as a text.
            assert!(replaced.as_str().matches("wharf://results/r-1").count() >= whole);
        }
        let passed = substitutions.passed.iter().map(|it| it.id.clone());
        let known = ids.as_ref().map(Vec::as_slice).unwrap_or_default();
        assert!(ids.is_err() || passed.into_iter().all(|it| known.contains(&it)));
    }
});

fn documents() -> HashMap<String, (StoredResult, Document)> {
    let stored = StoredResult {
        id: "r-1".to_owned(),
        handle: None,
        conversation: None,
        source: "a".to_owned(),
        tool: "t".to_owned(),
        kind: DocumentKind::Json,
        bytes: EVIL.len() as u64,
        sha256: String::new(),
        created_at: SystemTime::UNIX_EPOCH,
        expires_at: None,
    };
    [("r-1".to_owned(), (stored, Document { kind: DocumentKind::Json, text: EVIL.into() }))].into()
}
