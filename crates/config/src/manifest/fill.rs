//! Fills in the values that a manifest asks for.

use super::input::{Argument, Input};
use crate::{resolver::Layers, text::Text};
use std::collections::BTreeSet;

/// Source of the values.
pub(crate) enum Values<'a> {
    /// Values from the configured layers.
    Given(Layers<'a>),
    /// No values: `${NAME}` is written instead, for an agent file.
    Named,
}

/// Fills in one manifest and records which values are missing.
pub(crate) struct Filler<'a> {
    values: Values<'a>,
    /// Names of required values that were not given.
    pub(crate) missing: BTreeSet<String>,
    /// Names of optional values that were not given.
    pub(crate) open: BTreeSet<String>,
    /// Names of values that were used, or written as variables.
    pub(crate) used: BTreeSet<String>,
    /// Given values that are invalid: the name and the reason.
    pub(crate) wrong: Vec<(String, String)>,
}

impl<'a> Filler<'a> {
    pub(crate) fn new(values: Values<'a>) -> Filler<'a> {
        let (missing, open, used) = Default::default();
        Filler { values, missing, open, used, wrong: Vec::new() }
    }

    /// Returns the value of an environment variable, which may also come from this machine's environment.
    pub(super) fn variable(&mut self, name: &str, input: &Input) -> Option<Text> {
        match &self.values {
            // A given value overrides the value in the manifest.
            Values::Given(layers) if layers.declared(name).is_some() => self.open_value(name, input, true),
            _ if input.value.is_some() => self.template(name, input),
            _ => self.open_value(name, input, true),
        }
    }

    /// Returns the value of an input that is not an environment variable.
    pub(super) fn value(&mut self, id: &str, input: &Input) -> Option<Text> {
        if input.value.is_some() { self.template(id, input) } else { self.open_value(id, input, false) }
    }

    /// Returns an argument as it appears on the command line.
    pub(super) fn argument(&mut self, argument: &Argument) -> Vec<Text> {
        let Argument { flag, input, .. } = argument;
        let flag = flag.as_ref().map(|it| self.literal(it));
        if argument.is_bare() {
            return flag.into_iter().collect();
        }
        match self.value(argument.id(), input) {
            Some(value) => flag.into_iter().chain([value]).collect(),
            None => Vec::new(),
        }
    }

    /// Returns a value that must be given, or its default.
    fn open_value(&mut self, id: &str, input: &Input, declared: bool) -> Option<Text> {
        let name = if declared { id.to_owned() } else { variable_name(id) };
        let given = match &self.values {
            Values::Given(layers) if declared => layers.declared(id).map(str::to_owned),
            Values::Given(layers) => layers.given(id).or_else(|| layers.given(&name)).map(str::to_owned),
            Values::Named => {
                let wanted = input.required && (input.secret || input.default.is_none());
                wanted.then(|| format!("${{{name}}}"))
            }
        };
        match (given, &input.default, &self.values) {
            (Some(written), _, Values::Named) => {
                self.used.insert(name);
                Some(Text::plain(written))
            }
            (Some(given), ..) => {
                if let Some(why) = input.objection(&given) {
                    self.wrong.push((name.clone(), why));
                }
                self.used.extend([id.to_owned(), name]);
                Some(Text::secret(given, "***"))
            }
            (None, Some(default), _) => Some(self.literal(default)),
            (None, None, _) if input.required => {
                self.missing.insert(name);
                None
            }
            (None, None, _) => {
                self.open.insert(name);
                None
            }
        }
    }

    /// Returns a fixed value with its `{variables}` filled in. Returns `None` if an optional variable has no value;
    /// the whole value is then omitted.
    fn template(&mut self, id: &str, input: &Input) -> Option<Text> {
        let mut rest = input.value.as_deref().unwrap_or_default();
        let (mut value, mut secret, mut whole) = (String::new(), false, true);
        while let Some(start) = rest.find('{') {
            let end = rest[start..].find('}').map(|at| start + at);
            let known = end.and_then(|end| {
                let name = &rest[start + 1..end];
                input.variables.iter().find(|(it, _)| it == name).map(|found| (found, end))
            });
            let Some(((name, variable), end)) = known else {
                // Keep braces that do not name a variable.
                value.push_str(self.literal(&rest[..=start]).expose());
                rest = &rest[start + 1..];
                continue;
            };
            value.push_str(self.literal(&rest[..start]).expose());
            let needed = Input { required: variable.required || input.required, ..variable.clone() };
            let label = if variable.value.is_some() { id } else { name };
            match self.value(label, &needed) {
                Some(text) => {
                    secret |= text.is_secret();
                    value.push_str(text.expose());
                }
                None => whole = needed.required && whole,
            }
            rest = &rest[end + 1..];
        }
        value.push_str(self.literal(rest).expose());
        let text = if secret { Text::secret(value, "***") } else { Text::plain(value) };
        Some(text).filter(|_| whole)
    }

    /// Returns literal text of the manifest, escaped if it goes into an agent file.
    fn literal(&self, text: &str) -> Text {
        match self.values {
            Values::Named => Text::plain(text.replace("${", "$${")),
            Values::Given(_) => Text::plain(text),
        }
    }
}

/// Returns the variable name for an argument: `api-key` becomes `API_KEY`.
pub(crate) fn variable_name(id: &str) -> String {
    let name: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}
