//! Replaces `${VAR}` in string values. This happens after parsing, so a value can never change the structure of a
//! file.
//!
//! Names are looked up first among `${workspaceFolder}`, `${workspaceFolderBasename}` and `${userHome}`, then in the
//! environment of the process, then in the entry's env file. `${env:X}` skips the three predefined names.
//! `${X:-default}` uses the default if X is unset or empty. `$${` is a literal `${`. Substituted values are not
//! expanded again.

use super::{
    diagnostic::Diagnostics,
    env::Env,
    env_file::Assignment,
    node::{Node, Str, Value},
    place::{Lines, Place},
};
use crate::{file_position::FilePosition, masked_string::MaskedString};
use std::collections::BTreeSet;

/// Names that are defined for every agent file.
pub(crate) const PREDEFINED: [&str; 3] = ["workspaceFolder", "workspaceFolderBasename", "userHome"];

/// Maximum number of bytes that all substitutions of one file may produce.
const MAX_SUBSTITUTED_BYTES: usize = 4 * 1024 * 1024;
/// Cost of each variable in addition to its value, in bytes.
const VARIABLE_COST: usize = 100;

/// Sources of values for variables.
pub(crate) struct Scope<'a> {
    pub(crate) env: &'a Env,
    /// The entry's env file. `None` if it could not be read; an unknown variable is then not reported as a second
    /// error.
    pub(crate) env_file: Option<&'a [Assignment]>,
}

/// Replaces variables in a tree, within a budget per file.
pub(crate) struct Substitution<'a> {
    source: &'a str,
    lines: Lines<'a>,
    produced: usize,
    /// Variables that are set but empty, for which a warning was recorded.
    pub(crate) empty: BTreeSet<String>,
}

enum Piece<'a> {
    Literal(&'a str),
    /// `$${`
    Escape,
    Variable(Variable<'a>),
    Malformed {
        written: &'a str,
        why: &'static str,
    },
}

struct Variable<'a> {
    written: &'a str,
    name: &'a str,
    only_env: bool,
    default: Option<&'a str>,
}

struct FoundValue {
    value: String,
    secret: bool,
}

impl<'a> Substitution<'a> {
    pub(crate) fn new(source: &'a str) -> Substitution<'a> {
        Substitution { source, lines: Lines::of(source), produced: 0, empty: BTreeSet::new() }
    }

    /// Returns the line and column of a place in the file.
    pub(crate) fn position(&self, at: Place, file: &str) -> FilePosition {
        let (line, column) = self.lines.quick_position(at.start);
        FilePosition { file: file.to_owned(), line, column }
    }

    pub(crate) fn apply(&mut self, node: &mut Node, scope: &Scope<'_>, diagnostics: &mut Diagnostics) {
        match &mut node.value {
            _ if self.produced > MAX_SUBSTITUTED_BYTES => {}
            Value::Str(text) if text.text.expose().contains("${") => {
                let substituted = self.substituted(text.text.expose(), node.at, scope, diagnostics);
                node.value = substituted.map_or(Value::Broken, Value::Str);
            }
            Value::Seq(items) => items.iter_mut().for_each(|it| self.apply(it, scope, diagnostics)),
            Value::Map(pairs) => {
                pairs.iter_mut().for_each(|it| self.apply(&mut it.node, scope, diagnostics));
            }
            _ => {}
        }
    }

    /// Replaces the variables in `text`. `None` means that at least one could not be replaced.
    fn substituted(
        &mut self,
        text: &str,
        at: Place,
        scope: &Scope<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Str> {
        let is_variable = matches!(variable(text), (Piece::Variable(_), ""));
        let (mut value, mut shown, mut broken) = (String::new(), String::new(), false);
        let mut secrets = Vec::new();
        let mut searched = at.start;
        for piece in Pieces(text) {
            let found = match piece {
                Piece::Literal(text) => {
                    [&mut value, &mut shown].into_iter().for_each(|it| it.push_str(text));
                    continue;
                }
                Piece::Escape => {
                    value.push_str("${");
                    shown.push_str("$${");
                    continue;
                }
                Piece::Malformed { written, why } => {
                    diagnostics.malformed_variable(self.locate(written, at, &mut searched), why);
                    None
                }
                Piece::Variable(variable) => {
                    let at = self.locate(variable.written, at, &mut searched);
                    let found = scope.find(&variable);
                    match &found {
                        None => scope.report_unset(&variable, at, diagnostics),
                        Some(found) if found.secret && found.value.is_empty() => {
                            diagnostics.empty_variable(at, variable.name);
                            self.empty.insert(variable.name.to_owned());
                        }
                        Some(_) => {}
                    }
                    found.map(|found| (variable, found))
                }
            };
            self.produced += VARIABLE_COST + found.as_ref().map_or(0, |(_, it)| it.value.len());
            if self.produced > MAX_SUBSTITUTED_BYTES {
                diagnostics.substitution_too_large(at);
                return None;
            }
            let Some((variable, found)) = found else {
                broken = true;
                continue;
            };
            shown.push_str(if found.secret { variable.written } else { &found.value });
            value.push_str(&found.value);
            if found.secret {
                secrets.push((variable.name.to_owned(), found.value));
            }
        }
        let text = match secrets.is_empty() {
            true => MaskedString::plain(value),
            false => MaskedString::secret(value, shown).with_variables(secrets),
        };
        (!broken).then_some(Str { text, is_variable })
    }

    /// Returns the place of a variable inside its scalar, or the whole scalar if escapes or folding hide the
    /// variable.
    fn locate(&self, written: &str, at: Place, searched: &mut usize) -> Place {
        let rest = self.source.get(*searched..at.end).unwrap_or_default();
        match rest.find(written) {
            Some(offset) => {
                let start = *searched + offset;
                *searched = start + written.len();
                Place::new(start, *searched)
            }
            None => {
                // The following variables are hidden too. Do not search for them again, because repeated searches are
                // expensive.
                *searched = at.end;
                at
            }
        }
    }
}

impl Scope<'_> {
    fn find(&self, variable: &Variable<'_>) -> Option<FoundValue> {
        let plain = |value: String| FoundValue { value, secret: false };
        if !variable.only_env
            && let Some(value) = self.predefined(variable.name)
        {
            return value.map(plain);
        }
        let from_process = self.env.variables.get(variable.name);
        let value = from_process.or_else(|| self.env_file_value(variable.name));
        match (value, variable.default) {
            (Some(value), default) if default.is_none() || !value.is_empty() => {
                Some(FoundValue { value: value.clone(), secret: true })
            }
            (_, Some(default)) => Some(plain(default.to_owned())),
            (_, None) => {
                let value = format!("replay-{}", variable.name);
                self.env.assumes_variables.then_some(FoundValue { value, secret: true })
            }
        }
    }

    fn env_file_value(&self, name: &str) -> Option<&String> {
        let assignments = self.env_file?;
        let index = assignments.binary_search_by(|it| it.name.as_str().cmp(name)).ok()?;
        Some(&assignments[index].value)
    }

    /// Returns the value of a predefined name. `None`: not predefined. `Some(None)`: predefined, but there is no home
    /// folder.
    fn predefined(&self, name: &str) -> Option<Option<String>> {
        let folder = &self.env.folder;
        match name {
            "workspaceFolder" => Some(Some(folder.to_string_lossy().into_owned())),
            "workspaceFolderBasename" => Some(Some(
                folder.file_name().map_or_else(String::new, |it| it.to_string_lossy().into_owned()),
            )),
            "userHome" => Some(self.env.home.as_ref().map(|it| it.to_string_lossy().into_owned())),
            _ => None,
        }
    }

    fn report_unset(&self, variable: &Variable<'_>, at: Place, diagnostics: &mut Diagnostics) {
        if let Some(env_file) = self.env_file {
            let known =
                self.env.variables.keys().chain(env_file.iter().map(|it| &it.name)).map(String::as_str);
            diagnostics.unset_variable(at, variable.name, known.chain(PREDEFINED));
        }
    }
}

/// Splits a text at its variables.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let rest = self.0;
        let at = rest.find("${").unwrap_or(rest.len());
        // In `$$${X}` the last `$` before `${` belongs to the escape.
        let escaped = at < rest.len() && rest[..at].ends_with('$');
        let before = &rest[..at - usize::from(escaped)];
        let (piece, tail) = match () {
            () if rest.is_empty() => return None,
            () if !before.is_empty() => (Piece::Literal(before), &rest[before.len()..]),
            () if escaped => (Piece::Escape, &rest[at + 2..]),
            () => variable(rest),
        };
        self.0 = tail;
        Some(piece)
    }
}

/// Parses the `${…}` at the start of `text`.
fn variable(text: &str) -> (Piece<'_>, &str) {
    let Some(end) = text.find('}').filter(|_| text.starts_with("${")) else {
        return (Piece::Malformed { written: text, why: "the `}` is missing" }, "");
    };
    let (written, tail) = text.split_at(end + 1);
    let inside = &written[2..end];
    let (only_env, name) = match inside.strip_prefix("env:") {
        Some(name) => (true, name),
        None => (false, inside),
    };
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (name, None),
    };
    let why = match () {
        () if name.is_empty() => "the name is empty",
        () if inside.contains("${") => "nested variables are not supported",
        () if name.starts_with("input:") => {
            "`${input:…}` belongs to VS Code; use an environment variable instead, or import the file with `wharf init --from vscode`"
        }
        () if name.contains(':') => "only `${NAME}`, `${env:NAME}` and `${NAME:-default}` are supported",
        () if !is_name(name) => "a name consists of letters, digits and `_`, and does not start with a digit",
        () => return (Piece::Variable(Variable { written, name, only_env, default }), tail),
    };
    // A nested variable ends at a later brace, so the rest cannot be parsed reliably.
    let tail = if inside.contains("${") { "" } else { tail };
    (Piece::Malformed { written, why }, tail)
}

fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(&str, &str), &str>) {
        let mut env = Env::bare();
        env.folder = "/w/demo".into();
        env.home = Some("/h".into());
        for (name, value) in [("A", "one"), ("B", "${A}"), ("EMPTY", ""), ("userHome", "not this")] {
            env.variables.insert(name.into(), value.into());
        }
        let env_file = [("A", "file"), ("F", "from file")]
            .map(|(name, value)| Assignment { name: name.into(), value: value.into() });
        let scope = Scope { env: &env, env_file: Some(&env_file) };
        let mut diagnostics = Diagnostics::new("agent.yaml", text);
        let mut node = Node { value: Value::plain(text), at: Place::new(0, text.len()) };
        Substitution::new(text).apply(&mut node, &scope, &mut diagnostics);
        match (expected, node.value) {
            (Ok(expected), Value::Str(Str { text: got, .. })) => {
                assert_eq!((got.expose(), got.shown()), expected, "{text}");
            }
            (Ok(_), other) => panic!("a string stays a string: {other:?}"),
            (Err(expected), value) => {
                assert_eq!(value, Value::Broken, "{text}");
                let message = diagnostics.items().first().map_or("", |it| it.message.as_str());
                assert!(message.contains(expected), "{text}: {message:?}");
            }
        }
    }

    #[test]
    fn variables_are_substituted() {
        check("plain $A $$ {A}", Ok(("plain $A $$ {A}", "plain $A $$ {A}")));
        check("${A}", Ok(("one", "${A}")));
        check("x-${A}-${F}", Ok(("x-one-from file", "x-${A}-${F}")));
        check("${B}", Ok(("${A}", "${B}")));
        check("${workspaceFolder}/${workspaceFolderBasename}", Ok(("/w/demo/demo", "/w/demo/demo")));
        check("${userHome}", Ok(("/h", "/h")));
        check("${env:userHome}", Ok(("not this", "${env:userHome}")));
        check("${NOPE:-fallback}", Ok(("fallback", "fallback")));
        check("${EMPTY:-fallback}", Ok(("fallback", "fallback")));
        check("${EMPTY}", Ok(("", "${EMPTY}")));
        check("${A:-x}", Ok(("one", "${A:-x}")));
        check("${NOPE:-}", Ok(("", "")));
        check("$${A}", Ok(("${A}", "${A}")));
        check("$${A} ${A}", Ok(("${A} one", "$${A} ${A}")));
        for (text, message) in [
            ("${NOPE}", "ConfigError: Environment variable 'NOPE' not found"),
            ("${}", "the name is empty"),
            ("${A", "`}` is missing"),
            ("${input:x}", "VS Code"),
            ("${X:?}", "only `${NAME}`"),
            ("${X-d}", "letters, digits"),
            ("${1X}", "letters, digits"),
            ("${X:-${A}}", "nested variables"),
            ("${config:x}", "only `${NAME}`"),
        ] {
            check(text, Err(message));
        }
    }

    #[test]
    fn variables_have_a_budget() {
        let text = "${NOPE}".repeat(100_000);
        let mut diagnostics = Diagnostics::new("agent.yaml", text.as_str());
        let mut node = Node { value: Value::plain(text.as_str()), at: Place::new(0, text.len()) };
        let scope = Scope { env: &Env::bare(), env_file: Some(&[]) };
        let mut substitution = Substitution::new(&text);
        substitution.apply(&mut node, &scope, &mut diagnostics);
        assert!(substitution.produced <= MAX_SUBSTITUTED_BYTES + VARIABLE_COST);
        assert!(diagnostics.has_errors());
    }
}
