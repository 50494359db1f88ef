//! The rules of `wharf lint`.

mod hidden_characters;
mod useless_overrides;

use hidden_characters::{has_hidden_characters, suggest_clean_texts};
use serde_json::{Value, json};
use std::sync::Arc;
use useless_overrides::useless_overrides;
use wharf_config::Source;
use wharf_runtime::{Catalog, catalog::ToolEntry, tokens::estimate_tool};

/// Codes of all rules.
pub(super) const CODES: [&str; 9] = ["D-01", "D-02", "D-03", "D-04", "D-05", "D-06", "D-07", "D-08", "D-09"];

/// Tokens above which a tool is large.
const MAX_TOOL_TOKENS: u64 = 1_000;

/// Similarity from which two descriptions are too alike.
const MAX_SIMILARITY: f64 = 0.9;

/// Maximum number of tools whose descriptions are compared with each other.
const MAX_COMPARED_TOOLS: usize = 500;

/// Maximum length of a description that is compared, in characters.
const MAX_COMPARED_CHARS: usize = 500;

/// Phrases that are addressed to the model instead of describing the tool, in lower case.
const INSTRUCTIONS: [&str; 8] = [
    "ignore previous",
    "ignore all previous",
    "<important>",
    "do not tell",
    "don't tell the user",
    "do not mention",
    "system prompt",
    "you must always call",
];

/// One finding.
pub(super) struct Finding {
    pub(super) code: &'static str,
    pub(super) tool_id: String,
    pub(super) message: String,
    /// Tokens of the tool, if there is one.
    pub(super) tokens: Option<u64>,
    /// An entry for `overrides` that would help.
    pub(super) suggestion: Option<String>,
}

impl Finding {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "code": self.code, "tool_id": self.tool_id, "message": self.message, "tokens": self.tokens,
            "suggestion": self.suggestion,
        })
    }
}

/// Applies all rules to the tools of these sources.
pub(super) fn findings(catalog: &Catalog, sources: &[Arc<Source>]) -> Vec<Finding> {
    let mut found: Vec<Finding> = catalog.tools.iter().flat_map(|it| of_tool(it)).collect();
    found.extend(similar_descriptions(catalog));
    found.extend(sources.iter().flat_map(|it| useless_overrides(catalog, it)));
    found.sort_by(|one, two| (&one.tool_id, one.code).cmp(&(&two.tool_id, two.code)));
    found
}

fn of_tool(entry: &ToolEntry) -> Vec<Finding> {
    let tokens = estimate_tool(entry);
    let wire_name: &str = &entry.wire_name;
    let mut found = Vec::new();
    let mut add = |code, message: String, suggestion: Option<String>| {
        found.push(Finding { code, tool_id: entry.id(), message, tokens: Some(tokens), suggestion });
    };
    if tokens > MAX_TOOL_TOKENS {
        let shorter = format!("{{{wire_name}: {{description: SHORTER}}}}");
        add("D-01", format!("takes more than {MAX_TOOL_TOKENS} tokens"), Some(shorter));
    }
    if entry.description.as_deref().is_none_or(|it| it.trim().is_empty()) {
        add("D-02", "has no description".to_owned(), Some(format!("{{{wire_name}: {{description: TEXT}}}}")));
    }
    for argument in undescribed_arguments(entry) {
        let suggestion = format!("{{{wire_name}: {{arguments: {{{argument}: {{description: TEXT}}}}}}}}");
        add("D-03", format!("the argument '{argument}' has no description"), Some(suggestion));
    }
    let text = entry.raw.as_str();
    let definition: Value = entry.raw.decode_or_default();
    if has_hidden_characters(&definition) {
        add(
            "D-05",
            "has characters that people do not see".to_owned(),
            Some(suggest_clean_texts(wire_name, &definition)),
        );
    }
    let lower = text.to_lowercase();
    if let Some(phrase) = INSTRUCTIONS.iter().find(|it| lower.contains(*it)) {
        let suggestion = format!("{{{wire_name}: {{description: TEXT}}}}");
        add("D-06", format!("addresses the model: '{phrase}'"), Some(suggestion));
    }
    let has_annotations = definition["annotations"].as_object().is_some_and(|it| !it.is_empty());
    if !has_annotations {
        let suggestion = format!("{{{wire_name}: {{annotations: {{readOnlyHint: true}}}}}}");
        add("D-07", "has no annotations".to_owned(), Some(suggestion));
    }
    let is_plain = |it: &str| it.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if !is_plain(wire_name) {
        let name: String =
            wire_name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
        let suggestion = format!("{{{}: {{name: {name}}}}}", json!(wire_name));
        add("D-08", "its name has characters that models cannot use".to_owned(), Some(suggestion));
    }
    found
}

fn undescribed_arguments(entry: &ToolEntry) -> Vec<String> {
    let schema: Value = entry.tool.as_ref().map(|it| it.input_schema.decode_or_default()).unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let undescribed = properties.filter(|(_, it)| {
        it["description"].as_str().is_none_or(|it| it.trim().is_empty()) && it["$ref"].is_null()
    });
    undescribed.map(|(name, _)| name.clone()).collect()
}

fn similar_descriptions(catalog: &Catalog) -> Vec<Finding> {
    let described = catalog.tools.iter().take(MAX_COMPARED_TOOLS).filter_map(|it| {
        let text: String = it.description.as_ref()?.chars().take(MAX_COMPARED_CHARS).collect();
        (!text.trim().is_empty()).then_some((it, text))
    });
    let described: Vec<_> = described.collect();
    let mut found = Vec::new();
    for (at, (one, text)) in described.iter().enumerate() {
        let alike = described[at + 1..]
            .iter()
            .find(|(_, other)| strsim::sorensen_dice(text, other) >= MAX_SIMILARITY);
        if let Some((other, _)) = alike {
            let message = format!("its description is almost that of {}", other.id());
            let suggestion = Some(format!("{{{}: {{description: TEXT}}}}", one.wire_name));
            let tokens = Some(estimate_tool(one));
            found.push(Finding { code: "D-04", tool_id: one.id(), message, tokens, suggestion });
        }
    }
    found
}
