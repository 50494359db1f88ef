//! Diagnostics about a document: its bytes, syntax, variables and types.

use crate::{
    diagnostic::Diagnostics,
    echo::echo,
    files::FileError,
    masked_string::MaskedString,
    node::{Node, Str, Value},
    place::Place,
    scalar,
    variables::PREDEFINED,
};

/// Diagnostics about the file as a whole.
impl Diagnostics {
    pub(crate) fn too_large(file: &str) -> Diagnostics {
        let mut diagnostics = Diagnostics::new(file, "");
        diagnostics
            .file_level_error("Y-06", "ConfigError: the file is larger than 16 MiB")
            .hint("an agent file holds at most 50 tools; is this the right file?");
        diagnostics
    }

    pub(crate) fn not_utf8(file: &str, bytes: &[u8], valid_up_to: usize) -> Diagnostics {
        // Keep only the valid prefix, which is enough to compute the line of the error.
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

    pub(crate) fn empty_file(&mut self) {
        self.file_level_error("Y-05", "ConfigError: the file is empty")
            .hint("`wharf init` writes a working example");
    }

    pub(crate) fn control_character(&mut self, at: Place, character: char) {
        let code = u32::from(character);
        let message = format!("ConfigError: the file contains a control character (U+{code:04X})");
        let hint = if character == '\0' {
            "this looks like a binary file"
        } else {
            "remove it, or write it as an escape in double quotes"
        };
        self.error("Y-06", at, message).hint(hint);
    }

    pub(crate) fn several_documents(&mut self, at: Place) {
        self.error("Y-05", at, "ConfigError: the file has more than one document")
            .hint("remove the `---` and everything after it; one file describes one agent");
    }

    pub(crate) fn syntax(&mut self, at: Place, what: &str) {
        let (before, after) = self.source().split_at(at.start.min(self.source().len()));
        let hint = match () {
            () if before.ends_with('$') && after.starts_with('{') || before.ends_with("${") => {
                Some("inside [ ] and { }, put a value with ${…} in quotes".to_owned())
            }
            () if before.ends_with('\t') || after.starts_with('\t') => {
                Some("indent YAML with spaces, not tabs".to_owned())
            }
            () if after.starts_with(['@', '`']) => {
                Some("YAML reserves this character; put the value in quotes".to_owned())
            }
            () => None,
        };
        self.error("Y-01", at, format!("ConfigError: the file cannot be parsed: {what}")).hint = hint;
    }

    pub(crate) fn duplicate_key(&mut self, at: Place, key: &str, first: Place) {
        self.error("Y-02", at, format!("ConfigError: duplicate key '{}'", echo(key)))
            .related(first, "first here");
    }

    pub(crate) fn key_not_a_string(&mut self, at: Place) {
        self.error("Y-02", at, "ConfigError: a key must be a string");
    }

    pub(crate) fn too_deep(&mut self, at: Place, max_depth: usize) {
        self.error("Y-03", at, format!("ConfigError: the file nests deeper than {max_depth} levels"));
    }

    pub(crate) fn too_many_directives(&mut self, at: Place) {
        self.error("Y-03", at, "ConfigError: the file has too many directives (lines that begin with %)");
    }

    pub(crate) fn expansion_too_large(&mut self, at: Place) {
        self.error("Y-03", at, "ConfigError: the file is too large after its anchors are expanded")
            .hint("an alias copies everything below its anchor; use fewer aliases");
    }

    pub(crate) fn unknown_tag(&mut self, at: Place, tag: &str) {
        self.error("Y-04", at, format!("ConfigError: the tag '{}' is not supported here", echo(tag)))
            .hint("remove it; quote the value if it must be a string");
    }

    pub(crate) fn unknown_alias(&mut self, at: Place, name: &str) {
        let name = echo(name);
        self.error(
            "Y-04",
            at,
            format!("ConfigError: unknown anchor '&{name}': it must be defined above this alias"),
        );
    }

    pub(crate) fn recursive_alias(&mut self, at: Place) {
        self.error("Y-04", at, "ConfigError: an anchor must not contain its own alias");
    }

    pub(crate) fn merge_needs_mapping(&mut self, at: Place) {
        self.error("Y-04", at, "ConfigError: `<<` must be a mapping or a list of mappings");
    }

    pub(crate) fn not_a_mapping(&mut self, at: Place, what: &str) {
        let written = self.source().get(at.start..at.end).unwrap_or_default();
        let squeezed = !written.contains('\n') && !written.contains(": ") && written.contains(':');
        self.error("K-02", at, format!("ConfigError: {what} must be a mapping of keys to values")).hint =
            squeezed.then(|| "write a space after the `:` of a key".to_owned());
    }

    pub(crate) fn unknown_key(&mut self, at: Place, key: &str, what: &str, guess: Option<&str>) {
        let message = format!("ConfigError: unknown key '{}' in {what}", echo(key));
        let hint = match guess {
            Some(guess) => Some(format!("did you mean '{guess}'?")),
            None if matches!(key, "mcpServers" | "servers" | "inputs") => {
                Some("this is another client's format; `wharf init --from PATH` imports it".to_owned())
            }
            None => None,
        };
        let code = match what {
            _ if what.ends_with("an override") => "O-01",
            "a scenario" | "'calls'" | "a check" => "T-01",
            _ if what.starts_with("'expect") => "T-01",
            _ => "K-01",
        };
        self.error(code, at, message).hint = hint;
    }

    /// Reports an unknown key whose closest match, `unused`, is not used by this entry's transport.
    pub(crate) fn unknown_key_like(&mut self, at: Place, key: &str, what: &str, unused: &str) {
        let message = format!("ConfigError: unknown key '{}' in {what}", echo(key));
        let takes_timeouts = unused.ends_with("timeout");
        self.error("K-01", at, message).hint = takes_timeouts.then(|| {
            "did you mean 'request_timeout' (for calls) or 'connect_timeout' (for the start)?".to_owned()
        });
    }

    pub(crate) fn wrong_type(&mut self, class: &str, key: &str, expected: &str, node: &Node) {
        if node.value == Value::Broken {
            return;
        }
        let hint = match &node.value {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) if expected == "a string" => {
                Some("put it in quotes".to_owned())
            }
            Value::Str(it) => unexpected_string_hint(expected, it),
            Value::Seq(_) if key == "command" => {
                Some("write only the program here, and its arguments in `args`".to_owned())
            }
            _ => None,
        };
        self.error(code_of_type(class, key), node.at, format!("{class}: '{key}' must be {expected}")).hint =
            hint;
    }

    /// Reports a value that is too large.
    pub(crate) fn too_much(&mut self, at: Place, key: &str, expected: &str) {
        self.error("K-02", at, format!("ConfigError: '{key}' must be {expected}"));
    }

    /// Reports one value in a list or mapping of strings that is not a string.
    pub(crate) fn wrong_item(&mut self, class: &str, key: &str, expected: &str, node: &Node) {
        if node.value == Value::Broken {
            return;
        }
        let hint = match &node.value {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => Some("put it in quotes".to_owned()),
            Value::Null => Some("write \"\" for an empty string".to_owned()),
            _ => None,
        };
        self.error(code_of_type(class, key), node.at, format!("{class}: '{key}' must be {expected}")).hint =
            hint;
    }

    pub(crate) fn unknown_keyword(
        &mut self,
        at: Place,
        class: &str,
        key: &str,
        found: &MaskedString,
        keywords: &'static [&'static str],
    ) {
        let shown = echo(found.shown());
        let message = format!("{class}: Invalid {key} '{shown}'. Supported: {}", keywords.join(", "));
        let guess = self.closest(found.expose(), keywords.iter().copied());
        self.error("V-13", at, message).hint = guess.map(|it| format!("did you mean '{it}'?"));
    }

    pub(crate) fn nul_byte(&mut self, at: Place, class: &str, key: &str) {
        self.error("V-13", at, format!("{class}: '{key}' must not contain a NUL byte"));
    }

    pub(crate) fn not_a_json_number(&mut self, at: Place, class: &str, key: &str) {
        self.error("V-13", at, format!("{class}: '{key}' contains a number that JSON cannot represent")).hint(
            "JSON has no NaN, infinity or numbers beyond 64 bits; put it in quotes to pass it as a string",
        );
    }

    pub(crate) fn file_error(
        &mut self,
        at: Place,
        class: &str,
        key: &str,
        path: &MaskedString,
        error: &FileError,
    ) {
        let code = if key == "envFile" || key.starts_with("auth.") { "V-11" } else { "A-02" };
        let hint = match error {
            FileError::Missing => Some("the path is relative to the agent file".to_owned()),
            FileError::Outside => Some("move the file into the folder of the agent file".to_owned()),
            _ => None,
        };
        self.error(code, at, format!("{class}: '{key}' {} {error}", echo(path.shown()))).hint = hint;
    }

    pub(crate) fn file_not_text(&mut self, at: Place, class: &str, key: &str, path: &MaskedString) {
        let code = if key == "envFile" { "V-11" } else { "A-02" };
        self.error(code, at, format!("{class}: '{key}' {} is not UTF-8 text", echo(path.shown())));
    }
}

/// Diagnostics about variables.
impl Diagnostics {
    pub(crate) fn unset_variable<'a>(&mut self, at: Place, name: &str, known: impl Iterator<Item = &'a str>) {
        let guess = self.closest(name, known.filter(|it| *it != name));
        let name = echo(name);
        self.error("V-09", at, format!("ConfigError: Environment variable '{name}' not found")).hint(
            match guess {
                Some(guess) => format!("did you mean '{guess}'?"),
                None if PREDEFINED.contains(&name.as_str()) => {
                    format!("write ${{{name}}}, which is always defined")
                }
                None => format!(
                    "set it in the environment or in the entry's envFile, or give a default: ${{{name}:-…}}"
                ),
            },
        );
    }

    pub(crate) fn empty_variable(&mut self, at: Place, name: &str) {
        let name = echo(name);
        self.warning("V-09", at, format!("the variable '{name}' is set, but empty"))
            .hint(format!("give it a value, or write ${{{name}:-}} if it may be empty"));
    }

    /// Does not repeat the text, because a mistyped variable may be next to a secret.
    pub(crate) fn malformed_variable(&mut self, at: Place, why: &str) {
        self.error("V-09", at, format!("ConfigError: invalid variable: {why}"))
            .hint("write $${ for a literal ${");
    }

    pub(crate) fn substitution_too_large(&mut self, at: Place) {
        self.error("Y-03", at, "ConfigError: the file is too large after variable substitution");
    }
}

fn code_of_type(class: &str, key: &str) -> &'static str {
    match key {
        "request_timeout" | "timeout" | "sse_read_timeout" | "connect_timeout" | "install_timeout"
        | "max_total_timeout" => "V-10",
        _ if class == "ConfigError" => "K-02",
        _ => "V-13",
    }
}

/// Returns a hint for a string where another type is expected, if there is useful advice.
fn unexpected_string_hint(expected: &str, found: &Str) -> Option<String> {
    let expects_flag = expected == "true or false";
    let expects_number = expected.contains("number") || expected.contains("integer");
    let written = found.text.expose();
    match scalar::resolve(written) {
        _ if found.is_variable => Some(format!("the value of {} has another type", echo(found.text.shown()))),
        _ if found.text.is_secret() && (expects_flag || expects_number) => {
            Some("a variable must be the whole value, such as ${VAR}".to_owned())
        }
        Value::Bool(_) if expects_flag => Some("write it without quotes".to_owned()),
        Value::Int(_) | Value::Float(_) if expects_number => Some("write it without quotes".to_owned()),
        _ if expects_flag && matches!(written, "yes" | "no" | "on" | "off" | "Yes" | "No") => {
            Some("YAML 1.2 has only `true` and `false`".to_owned())
        }
        _ => None,
    }
}
