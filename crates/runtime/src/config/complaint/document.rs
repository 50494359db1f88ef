//! Complaints about the file: its bytes, its YAML, its variables, its types.

use crate::{
    config::{
        diagnostic::Diagnostics,
        files::FileTrouble,
        node::{Node, Value},
        place::Place,
        suggest,
    },
    text::Text,
};

/// The file as a whole.
impl Diagnostics {
    pub(in crate::config) fn too_large(file: &str) -> Diagnostics {
        let mut diagnostics = Diagnostics::new(file, "");
        diagnostics
            .whole_file("Y-06", "ConfigError: the file is larger than 16 MiB")
            .hint("an agent file holds at most 50 tools; is this the right file?");
        diagnostics
    }

    pub(in crate::config) fn not_utf8(file: &str, bytes: &[u8], valid_up_to: usize) -> Diagnostics {
        // Only what can be read is kept: enough to say on which line the trouble begins.
        let readable = String::from_utf8_lossy(&bytes[..valid_up_to]).into_owned();
        let binary = bytes.contains(&0);
        let mut diagnostics = Diagnostics::new(file, readable);
        let at = Place::new(valid_up_to, valid_up_to);
        diagnostics.error("Y-06", at, "ConfigError: the file is not UTF-8 text").hint(if binary {
            "this looks like a binary file, or like UTF-16; save it as UTF-8"
        } else {
            "save the file as UTF-8"
        });
        diagnostics
    }

    pub(in crate::config) fn empty_file(&mut self) {
        self.whole_file("Y-05", "ConfigError: the file is empty")
            .hint("`wharf init` writes a working example");
    }

    pub(in crate::config) fn control_character(&mut self, at: Place, character: char) {
        let code = u32::from(character);
        let message = format!("ConfigError: the file contains a control character (U+{code:04X})");
        let hint = if character == '\0' {
            "this looks like a binary file"
        } else {
            "remove it, or write it as an escape in double quotes"
        };
        self.error("Y-06", at, message).hint(hint);
    }

    pub(in crate::config) fn several_documents(&mut self, at: Place) {
        self.error("Y-05", at, "ConfigError: the file has more than one document")
            .hint("remove the `---` and what follows it; one file describes one agent");
    }

    pub(in crate::config) fn syntax(&mut self, at: Place, what: &str) {
        let (before, after) = self.source().split_at(at.start.min(self.source().len()));
        let hint = match () {
            () if before.ends_with('$') && after.starts_with('{') || before.ends_with("${") => {
                Some("inside [ ] and { }, put a value with ${…} in quotes".to_owned())
            }
            () if before.ends_with('\t') || after.starts_with('\t') => {
                Some("YAML is indented with spaces".to_owned())
            }
            () => None,
        };
        self.error("Y-01", at, format!("ConfigError: the file cannot be parsed: {what}")).hint = hint;
    }

    pub(in crate::config) fn duplicate_key(&mut self, at: Place, key: &str, first: Place) {
        self.error("Y-02", at, format!("ConfigError: the key '{key}' is there twice"))
            .also(first, "first here");
    }

    pub(in crate::config) fn key_not_a_string(&mut self, at: Place) {
        self.error("Y-02", at, "ConfigError: a key must be a string");
    }

    pub(in crate::config) fn too_deep(&mut self, at: Place, deepest: usize) {
        self.error("Y-03", at, format!("ConfigError: the file nests deeper than {deepest} levels"));
    }

    pub(in crate::config) fn over_budget(&mut self, at: Place) {
        self.error("Y-03", at, "ConfigError: the file is too large once its anchors are expanded")
            .hint("an alias repeats everything below its anchor; write out what is meant");
    }

    pub(in crate::config) fn unknown_tag(&mut self, at: Place, tag: &str) {
        self.error("Y-04", at, format!("ConfigError: the tag '{tag}' is not supported here"))
            .hint("remove it; quote the value if it must be a string");
    }

    pub(in crate::config) fn unknown_alias(&mut self, at: Place, name: &str) {
        self.error("Y-04", at, format!("ConfigError: there is no anchor '&{name}' above this alias"));
    }

    pub(in crate::config) fn recursive_alias(&mut self, at: Place) {
        self.error("Y-04", at, "ConfigError: an anchor must not contain its own alias");
    }

    pub(in crate::config) fn merge_needs_mapping(&mut self, at: Place) {
        self.error("Y-04", at, "ConfigError: `<<` takes a mapping, or a list of mappings");
    }

    pub(in crate::config) fn not_a_mapping(&mut self, at: Place, what: &str) {
        self.error("K-02", at, format!("ConfigError: {what} must be a mapping of keys to values"));
    }

    pub(in crate::config) fn unknown_key(&mut self, at: Place, key: &str, what: &str, guess: Option<&str>) {
        let message = format!("ConfigError: unknown key '{key}' in {what}");
        let hint = match guess {
            Some(guess) => Some(format!("did you mean '{guess}'?")),
            None if matches!(key, "mcpServers" | "servers" | "inputs") => {
                Some("this is another client's format; `wharf init --from PATH` imports it".to_owned())
            }
            None => None,
        };
        self.error("K-01", at, message).hint = hint;
    }

    pub(in crate::config) fn wrong_type(&mut self, class: &str, key: &str, expected: &str, node: &Node) {
        let code = match key {
            "request_timeout" | "timeout" | "sse_read_timeout" | "connect_timeout" | "max_total_timeout" => {
                "V-10"
            }
            _ if class == "ConfigError" => "K-02",
            _ => "V-13",
        };
        let wants_string = expected.contains("string");
        let hint = match &node.value {
            Value::Str(it) if it.is_variable => {
                Some(format!("the value of {} is something else", it.text.shown()))
            }
            Value::Str(it) if matches!(it.text.expose(), "yes" | "no" | "on" | "off" | "Yes" | "No") => {
                Some("YAML 1.2 has only `true` and `false`".to_owned())
            }
            Value::Str(_) if !wants_string => Some("write it without quotes".to_owned()),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) if wants_string => {
                Some("put it in quotes".to_owned())
            }
            Value::Null if wants_string => Some("an empty string is written \"\"".to_owned()),
            _ => None,
        };
        self.error(code, node.at, format!("{class}: '{key}' must be {expected}")).hint = hint;
    }

    pub(in crate::config) fn unknown_word(
        &mut self,
        at: Place,
        class: &str,
        key: &str,
        found: &Text,
        words: &'static [&'static str],
    ) {
        let message = format!("{class}: Invalid {key} '{}'. Supported: {}", found.shown(), words.join(", "));
        let guess = suggest::closest(found.expose(), words.iter().copied());
        self.error("V-13", at, message).hint = guess.map(|it| format!("did you mean '{it}'?"));
    }

    pub(in crate::config) fn nul_byte(&mut self, at: Place, class: &str, key: &str) {
        self.error("V-13", at, format!("{class}: '{key}' must not contain a NUL byte"));
    }

    pub(in crate::config) fn not_a_json_number(&mut self, at: Place, class: &str, key: &str) {
        self.error("V-13", at, format!("{class}: '{key}' holds a number that JSON cannot say")).hint(
            "NaN, infinity and numbers beyond 64 bits have no JSON form; quote it to pass it as a string",
        );
    }

    pub(in crate::config) fn file_trouble(
        &mut self,
        at: Place,
        class: &str,
        key: &str,
        path: &Text,
        trouble: &FileTrouble,
    ) {
        let code = if key == "envFile" { "V-11" } else { "A-02" };
        let hint = match trouble {
            FileTrouble::Missing => Some("the path is relative to the agent file".to_owned()),
            FileTrouble::Outside => {
                Some("move the file into the folder of the agent file, or below it".to_owned())
            }
            _ => None,
        };
        self.error(code, at, format!("{class}: '{key}' {} {trouble}", path.shown())).hint = hint;
    }

    pub(in crate::config) fn file_not_text(&mut self, at: Place, class: &str, key: &str, path: &Text) {
        let code = if key == "envFile" { "V-11" } else { "A-02" };
        self.error(code, at, format!("{class}: '{key}' {} is not UTF-8 text", path.shown()));
    }
}

/// Variables.
impl Diagnostics {
    pub(in crate::config) fn unset_variable<'a>(
        &mut self,
        at: Place,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) {
        let guess = suggest::closest(name, known);
        self.error("V-09", at, format!("ConfigError: Environment variable '{name}' not found")).hint(
            match guess {
                Some(guess) => format!("did you mean '{guess}'?"),
                None => format!(
                    "set it in the environment or in the entry's envFile, or give a default: ${{{name}:-…}}"
                ),
            },
        );
    }

    pub(in crate::config) fn malformed_variable(&mut self, at: Place, written: &str, why: &str) {
        // What is not closed runs to the end of its text, which need not be repeated here.
        let written: String = written.chars().take(40).collect();
        self.error("V-09", at, format!("ConfigError: '{written}' is not a variable: {why}"))
            .hint("write $${ for a literal ${");
    }

    pub(in crate::config) fn substitution_over_budget(&mut self, at: Place) {
        self.error("Y-03", at, "ConfigError: the file is too large once its variables are filled in");
    }
}
