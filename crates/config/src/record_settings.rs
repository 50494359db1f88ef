//! Settings of recordings: what matching ignores, and what is replaced before a recording is written.

use crate::glob::Glob;
use regex::Regex;
use std::collections::BTreeMap;

/// Maximum size of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// Settings of recordings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSettings {
    /// JSON pointers into arguments that matching ignores, by glob over `source:tool`.
    pub ignore: BTreeMap<String, Vec<String>>,
    /// Patterns of text to replace, by the name of the replacement.
    pub redact: BTreeMap<String, TextPattern>,
}

impl RecordSettings {
    /// Returns the pointers that are ignored for a tool, `source:tool`.
    pub fn ignored(&self, tool_id: &str) -> Vec<String> {
        let pointers = self.ignore.iter().filter(|(glob, _)| Glob::new(*glob).matches(tool_id));
        pointers.flat_map(|(_, it)| it.clone()).collect()
    }
}

/// A valid regular expression. It takes time proportional to the text.
#[derive(Clone, Debug)]
pub struct TextPattern(Regex);

impl TextPattern {
    /// Compiles a pattern. The error says what is wrong with it.
    pub fn new(pattern: &str) -> Result<TextPattern, String> {
        let compiled = regex::RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build();
        compiled.map(TextPattern).map_err(|error| {
            let text = error.to_string();
            text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }

    /// Returns the compiled pattern.
    pub fn regex(&self) -> &Regex {
        &self.0
    }
}

impl PartialEq for TextPattern {
    fn eq(&self, other: &TextPattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}
