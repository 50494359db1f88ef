//! Fills in the values that a manifest asks for.

use super::input::{Argument, Input};
use crate::{masked_string::MaskedString, variable_layers::VariableLayers};
use std::collections::BTreeSet;

/// Source of the values.
pub(crate) enum ValueSource<'a> {
    /// Values from the configured layers.
    Layered(VariableLayers<'a>),
    /// No values: `${NAME}` is written instead, for an agent file.
    Placeholders,
}

/// Fills in one manifest and records which values are missing.
pub(crate) struct ManifestFiller<'a> {
    values: ValueSource<'a>,
    /// Names of required values that were not given.
    pub(crate) missing: BTreeSet<String>,
    /// Names of optional values that were not given.
    pub(crate) optional: BTreeSet<String>,
    /// Names of values that were used, or written as variables.
    pub(crate) used: BTreeSet<String>,
    /// Given values that are invalid: the name and the reason.
    pub(crate) wrong: Vec<(String, String)>,
}

impl<'a> ManifestFiller<'a> {
    pub(crate) fn new(values: ValueSource<'a>) -> ManifestFiller<'a> {
        let (missing, optional, used) = Default::default();
        ManifestFiller { values, missing, optional, used, wrong: Vec::new() }
    }

    /// Returns the value of an environment variable, which may also come from this machine's environment.
    pub(super) fn variable(&mut self, name: &str, input: &Input) -> Option<MaskedString> {
        match &self.values {
            // A given value overrides the value in the manifest.
            ValueSource::Layered(layers) if layers.declared(name).is_some() => {
                self.given_value(name, input, true)
            }
            _ if input.value.is_some() => self.template(name, input),
            _ => self.given_value(name, input, true),
        }
    }

    /// Returns the value of an input that is not an environment variable.
    pub(super) fn value(&mut self, id: &str, input: &Input) -> Option<MaskedString> {
        if input.value.is_some() { self.template(id, input) } else { self.given_value(id, input, false) }
    }

    /// Returns an argument as it appears on the command line.
    pub(super) fn argument(&mut self, argument: &Argument) -> Vec<MaskedString> {
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
    fn given_value(&mut self, id: &str, input: &Input, declared: bool) -> Option<MaskedString> {
        let name = if declared { id.to_owned() } else { variable_name(id) };
        let given = match &self.values {
            ValueSource::Layered(layers) if declared => layers.declared(id).map(str::to_owned),
            ValueSource::Layered(layers) => {
                layers.given(id).or_else(|| layers.given(&name)).map(str::to_owned)
            }
            ValueSource::Placeholders => {
                let wanted = input.required && (input.secret || input.default.is_none());
                wanted.then(|| format!("${{{name}}}"))
            }
        };
        match (given, &input.default, &self.values) {
            (Some(written), _, ValueSource::Placeholders) => {
                self.used.insert(name);
                Some(MaskedString::plain(written))
            }
            (Some(given), ..) => {
                if let Some(why) = input.invalid_reason(&given) {
                    self.wrong.push((name.clone(), why));
                }
                self.used.extend([id.to_owned(), name]);
                Some(MaskedString::secret(given, "***"))
            }
            (None, Some(default), _) => Some(self.literal(default)),
            (None, None, _) if input.required => {
                self.missing.insert(name);
                None
            }
            (None, None, _) => {
                self.optional.insert(name);
                None
            }
        }
    }

    /// Returns a fixed value with its `{variables}` filled in. Returns `None` if an optional variable has no value;
    /// the whole value is then omitted.
    fn template(&mut self, id: &str, input: &Input) -> Option<MaskedString> {
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
        let text = if secret { MaskedString::secret(value, "***") } else { MaskedString::plain(value) };
        Some(text).filter(|_| whole)
    }

    /// Returns literal text of the manifest, escaped if it goes into an agent file.
    fn literal(&self, text: &str) -> MaskedString {
        match self.values {
            ValueSource::Placeholders => MaskedString::plain(text.replace("${", "$${")),
            ValueSource::Layered(_) => MaskedString::plain(text),
        }
    }
}

/// Returns the variable name for an argument: `api-key` becomes `API_KEY`.
pub(crate) fn variable_name(id: &str) -> String {
    let name: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}
