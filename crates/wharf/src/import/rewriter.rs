//! Rewrites the texts of one server: converts another client's variables to wharf's, and moves values to the env
//! file.

use super::{
    checker::Reason,
    document::ClientDocument,
    env_file::EnvFileWriter,
    note::{Note, printable},
    secret,
    split_values::{self, Piece},
    template::{Part, VariableSyntax, escape, is_literal, is_name, is_predefined, parts},
};
use std::collections::BTreeSet;
use wharf_config::Env;

/// Collects the env file, notes and errors while the texts of one server are rewritten.
pub(super) struct TextRewriter<'a> {
    server: &'a str,
    document: &'a ClientDocument,
    env: &'a Env,
    pub(super) env_file: EnvFileWriter<'a>,
    pub(super) notes: Vec<Note>,
    /// Reasons to refuse the server, regardless of the loader.
    pub(super) reasons: Vec<Reason>,
    /// Variables that are not set in the environment.
    unset: BTreeSet<String>,
    /// Whether literal text that looks like a variable was escaped.
    escaped: bool,
}

impl<'a> TextRewriter<'a> {
    pub(super) fn new(
        server: &'a str,
        file: &'a str,
        document: &'a ClientDocument,
        env: &'a Env,
    ) -> TextRewriter<'a> {
        TextRewriter {
            server,
            document,
            env,
            env_file: EnvFileWriter::new(server, file, env),
            notes: Vec::new(),
            reasons: Vec::new(),
            unset: BTreeSet::new(),
            escaped: false,
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(Note::about(self.server, text));
    }

    /// Adds a reason to refuse the server.
    pub(super) fn refuse(&mut self, message: impl Into<String>) {
        let reason = Reason::new(message);
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Rewrites a text that stays in the agent file, unless it looks like a secret.
    pub(super) fn word(&mut self, key: &str, text: &str) -> String {
        self.text(key, text, |it| split_values::split_argument(None, it))
    }

    /// Rewrites the value of a variable or header: it moves to the env file. A value that contains variables stays,
    /// because env files have none.
    pub(super) fn value(&mut self, key: &str, name: &str, value: &str) -> String {
        if is_literal(self.document.syntax, value) {
            return self.text(key, value, |it| split_values::split_value(name, it));
        }
        self.word(key, value)
    }

    /// Rewrites a text in wharf's syntax. `pieces` finds what moves to the env file in its literal parts.
    pub(super) fn text<'t>(
        &mut self,
        key: &str,
        text: &'t str,
        pieces: impl Fn(&'t str) -> Vec<Piece<'t>>,
    ) -> String {
        if text.contains('\0') {
            self.refuse(format!("`{key}` contains a NUL character"));
        }
        let mut out = String::new();
        for part in parts(self.document.syntax, text) {
            let variable = match part {
                Part::Literal(literal) => {
                    self.literal(key, &mut out, pieces(literal));
                    continue;
                }
                Part::Predefined(written) => written.to_owned(),
                Part::Input(id) => self.input(id),
                Part::Variable { written, name, default } => self.variable(written, name, default),
                Part::EditorOnly(written) => self.editor_variable(key, written),
            };
            self.push(key, &mut out, &variable);
        }
        out
    }

    /// Returns a reference to a variable that the client names directly. Refuses an invalid name without showing it:
    /// it may be a misplaced secret.
    pub(super) fn reference(&mut self, key: &str, name: &str) -> Option<String> {
        if !is_name(name) {
            self.refuse(format!("`{key}` contains an invalid variable name"));
            return None;
        }
        Some(self.variable(&format!("${{{name}}}"), name, None))
    }

    /// Returns the variables without a value: not set in the environment, or empty in the env file.
    pub(super) fn missing_variables(&self) -> Vec<String> {
        let empty_names = self.env_file.empty_names().filter(|it| !self.env.variables.contains_key(*it));
        self.unset.iter().cloned().chain(empty_names.map(str::to_owned)).collect()
    }

    /// Adds the notes that concern all texts, after the last one.
    pub(super) fn add_final_notes(&mut self) {
        for name in std::mem::take(&mut self.unset) {
            self.note(format!("`{name}` is not set here; until it is, `${{{name}:-}}` is empty"));
        }
        if self.escaped {
            self.note("`${…}` is passed on literally, as the client does; write one `$` instead of two to insert the variable");
        }
    }

    fn literal(&mut self, key: &str, out: &mut String, pieces: Vec<Piece<'_>>) {
        for piece in pieces {
            match piece {
                Piece::Plain(text) => {
                    self.escaped |= self.document.syntax == VariableSyntax::Literal && text.contains("${");
                    out.push_str(&escape(text));
                }
                Piece::Secret { text, what } => {
                    let name = self.env_file.add(what, text);
                    self.push(key, out, &format!("${{{name}}}"));
                }
            }
        }
    }

    /// Appends a variable. Refuses a preceding `$`, because `$$` would be an escape.
    fn push(&mut self, key: &str, out: &mut String, variable: &str) {
        if out.ends_with('$') {
            self.refuse(format!(
                "`{key}` has a `$` right before a variable, which agent.yaml cannot express"
            ));
        }
        out.push_str(variable);
    }

    fn variable(&mut self, written: &str, name: &str, default: Option<&str>) -> String {
        let is_set = self.env.variables.contains_key(name);
        match default {
            Some(default) if secret::is_secret(name, default) => {
                self.env_file.set_input(name, name, default, "used if the environment does not set it");
                format!("${{{name}}}")
            }
            Some(_) => written.to_owned(),
            None if is_set && written.starts_with("${") => written.to_owned(),
            None if is_set => format!("${{{name}}}"),
            None => {
                self.unset.insert(name.to_owned());
                // Without the prefix, a name like `userHome` would refer to wharf's predefined variable.
                let prefix = if is_predefined(name) { "env:" } else { "" };
                format!("${{{prefix}{name}:-}}")
            }
        }
    }

    /// Converts an input to a line of the env file, with the default as its value.
    fn input(&mut self, id: &str) -> String {
        let name = self.env_file.name_of_input(id);
        let input = self.document.inputs.find(id);
        let comment = input.map_or("the client's file does not describe it", |it| it.comment.as_str());
        let default = input.and_then(|it| it.default.as_deref());
        self.env_file.set_input(&name, id, default.unwrap_or_default(), comment);
        format!("${{{name}}}")
    }

    fn editor_variable(&mut self, key: &str, written: &str) -> String {
        let is_secret = secret::contains_secret(written);
        let shown = if is_secret { "${…}".to_owned() } else { printable(written) };
        self.refuse(format!("`{key}` uses `{shown}`, which only an editor can fill in"));
        if is_secret { format!("${{{}}}", self.env_file.add(key, written)) } else { written.to_owned() }
    }
}
