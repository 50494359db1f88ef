//! Rewrites the texts of one server: another client's variables become wharf's, and secrets move into the vault.

use super::{
    conceal::{self, Cut},
    document::Document,
    note::{Note, printable},
    secret,
    template::{Dialect, Part, escape, is_name, is_predefined, parts},
    trial::Reason,
    vault::Vault,
};
use std::collections::BTreeSet;
use wharf_runtime::config::Env;

/// What comes together while the texts of one server are rewritten.
pub(super) struct Writer<'a> {
    server: &'a str,
    document: &'a Document,
    env: &'a Env,
    pub(super) vault: Vault<'a>,
    pub(super) notes: Vec<Note>,
    /// Why the server cannot be an entry, whatever the loader says.
    pub(super) reasons: Vec<Reason>,
    /// Variables that are not set here.
    unset: BTreeSet<String>,
    /// Whether something was escaped that looks like a variable.
    escaped: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(server: &'a str, file: &'a str, document: &'a Document, env: &'a Env) -> Writer<'a> {
        Writer {
            server,
            document,
            env,
            vault: Vault::new(server, file, env),
            notes: Vec::new(),
            reasons: Vec::new(),
            unset: BTreeSet::new(),
            escaped: false,
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(Note::about(self.server, text));
    }

    /// Says why the server cannot be an entry.
    pub(super) fn refuse(&mut self, message: impl Into<String>) {
        let reason = Reason::new(message);
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// A text that has no business to hold a secret, and is looked at all the same.
    pub(super) fn word(&mut self, key: &str, text: &str) -> String {
        self.text(key, text, |it| conceal::named(key, it))
    }

    /// A text as wharf writes it. `cuts` finds the secrets in what is literal of it.
    pub(super) fn text<'t>(
        &mut self,
        key: &str,
        text: &'t str,
        cuts: impl Fn(&'t str) -> Vec<Cut<'t>>,
    ) -> String {
        if text.contains('\0') {
            self.refuse(format!("`{key}` contains a NUL character"));
        }
        let mut out = String::new();
        for part in parts(self.document.dialect, text) {
            let variable = match part {
                Part::Literal(literal) => {
                    self.literal(key, &mut out, cuts(literal));
                    continue;
                }
                Part::Same(written) => written.to_owned(),
                Part::Input(id) => self.input(id),
                Part::Variable { written, name, default } => self.variable(written, name, default),
                Part::Foreign(written) => self.foreign(key, written),
            };
            self.push(key, &mut out, &variable);
        }
        out
    }

    /// A reference to a variable that the client names by itself, without a text around it. What is no name may be a
    /// secret that was written in the wrong place.
    pub(super) fn reference(&mut self, key: &str, name: &str) -> Option<String> {
        if !is_name(name) {
            self.refuse(format!("what `{key}` names is not a variable"));
            return None;
        }
        Some(self.variable(&format!("${{{name}}}"), name, None))
    }

    /// The variables that have no value yet: not set here, or left empty in the env file.
    pub(super) fn lacking(&self) -> Vec<String> {
        let blanks = self.vault.blanks().filter(|it| !self.env.variables.contains_key(*it));
        self.unset.iter().cloned().chain(blanks.map(str::to_owned)).collect()
    }

    /// The notes about everything together, once all texts are written.
    pub(super) fn close(&mut self) {
        for name in std::mem::take(&mut self.unset) {
            self.note(format!("`{name}` is not set here; until it is, `${{{name}:-}}` is empty"));
        }
        if self.escaped {
            self.note("`${…}` is passed on as it stands, as the client does; with one `$` instead of two wharf fills it in");
        }
    }

    fn literal(&mut self, key: &str, out: &mut String, cuts: Vec<Cut<'_>>) {
        for cut in cuts {
            match cut {
                Cut::Open(text) => {
                    self.escaped |= self.document.dialect == Dialect::Literal && text.contains("${");
                    out.push_str(&escape(text));
                }
                Cut::Secret { text, what } => {
                    let name = self.vault.hide(what, text);
                    self.push(key, out, &format!("${{{name}}}"));
                }
            }
        }
    }

    /// A `$` before a variable would make it an escape.
    fn push(&mut self, key: &str, out: &mut String, variable: &str) {
        if out.ends_with('$') {
            self.refuse(format!("`{key}` has a `$` right before a variable, which agent.yaml cannot say"));
        }
        out.push_str(variable);
    }

    fn variable(&mut self, written: &str, name: &str, default: Option<&str>) -> String {
        let is_set = self.env.variables.contains_key(name);
        match default {
            Some(default) if secret::is_secret(name, default) => {
                self.vault.keep_input(name, name, default, "used where the environment has no such name");
                format!("${{{name}}}")
            }
            Some(_) => written.to_owned(),
            None if is_set && written.starts_with("${") => written.to_owned(),
            None if is_set => format!("${{{name}}}"),
            None => {
                self.unset.insert(name.to_owned());
                // Without the prefix, a name like `userHome` would mean wharf's own.
                let prefix = if is_predefined(name) { "env:" } else { "" };
                format!("${{{prefix}{name}:-}}")
            }
        }
    }

    /// An input with a default carries it along; one without leaves room in the env file.
    fn input(&mut self, id: &str) -> String {
        let name = self.vault.name_of_input(id);
        let input = self.document.inputs.find(id);
        let comment = input.map_or("the client's file does not describe it", |it| it.comment.as_str());
        let secret = |default: &str| input.is_some_and(|it| it.secret) || secret::is_secret(id, default);
        match input.and_then(|it| it.default.as_deref()) {
            Some(default) if !secret(default) && !default.contains(['}', '$', '\0']) => {
                format!("${{{name}:-{default}}}")
            }
            default => {
                self.vault.keep_input(&name, id, default.unwrap_or_default(), comment);
                format!("${{{name}}}")
            }
        }
    }

    fn foreign(&mut self, key: &str, written: &str) -> String {
        let is_secret = secret::looks_secret(written);
        let shown = if is_secret { "${…}".to_owned() } else { printable(written) };
        self.refuse(format!("`{key}` uses `{shown}`, which only an editor can fill in"));
        if is_secret { format!("${{{}}}", self.vault.hide(key, written)) } else { written.to_owned() }
    }
}
