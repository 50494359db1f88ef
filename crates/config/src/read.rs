//! Reads typed values from fields and reports wrong types.

use super::{
    diagnostic::Diagnostics,
    node::{Node, Value},
    place::{Placed, PlacedString},
    raw::Field,
    scalar,
    server_config::ServerConfig,
};
use crate::masked_string::MaskedString;
use serde_json::Number;
use std::time::Duration;

/// Maximum value of a timeout, in seconds.
pub(crate) const MAX_TIMEOUT_SECONDS: u64 = 86_400;

/// A mapping of strings, with the places of keys and values.
pub(crate) type StringPairs = Vec<(Placed<String>, PlacedString)>;

/// Reads the fields of one mapping. `class` is the error class in its messages.
pub(crate) struct Reader<'a> {
    pub(crate) class: &'static str,
    pub(crate) diagnostics: &'a mut Diagnostics,
}

impl Reader<'_> {
    pub(crate) fn text(&mut self, key: &str, field: Option<Field>) -> Option<PlacedString> {
        let node = field?.node;
        let at = node.at;
        match node.value {
            Value::Str(it) => Some(Placed::new(it.text, at)),
            _ => {
                self.report_wrong_type(key, "a string", &node);
                None
            }
        }
    }

    /// Reads one of a few keywords.
    pub(crate) fn keyword<T>(
        &mut self,
        key: &str,
        field: Option<Field>,
        keywords: &'static [&'static str],
        parse: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(key, field)?;
        let parsed = parse(text.value.expose());
        if parsed.is_none() {
            self.diagnostics.unknown_keyword(text.at, self.class, key, &text.value, keywords);
        }
        parsed
    }

    /// Reads a value with its own syntax, such as a duration with a unit. A number is parsed in its written form.
    pub(crate) fn parsed<T>(
        &mut self,
        key: &str,
        field: Option<Field>,
        expected: &str,
        parse: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let node = field?.node;
        let found = match &node.value {
            Value::Str(it) => parse(it.text.expose()),
            Value::Int(it) => parse(&it.to_string()),
            _ => None,
        };
        if found.is_none() {
            self.report_wrong_type(key, expected, &node);
        }
        found
    }

    pub(crate) fn flag(&mut self, key: &str, field: Option<Field>) -> Option<bool> {
        let node = convert_variable(field?.node);
        match node.value {
            Value::Bool(it) => Some(it),
            _ => {
                self.report_wrong_type(key, "true or false", &node);
                None
            }
        }
    }

    /// Reads an integer from 1 to `max`.
    pub(crate) fn count(&mut self, key: &str, field: Option<Field>, max: u64) -> Option<u64> {
        let node = convert_variable(field?.node);
        match node.value {
            Value::Int(it) if it >= 1 && it <= i128::from(max) => u64::try_from(it).ok(),
            _ if max < u64::MAX => {
                self.report_wrong_type(key, &format!("a positive integer, at most {max}"), &node);
                None
            }
            _ => {
                self.report_wrong_type(key, "a positive integer", &node);
                None
            }
        }
    }

    /// Reads an integer between two inclusive bounds.
    pub(crate) fn integer(&mut self, key: &str, field: Option<Field>, min: u64, max: u64) -> Option<u64> {
        let node = field?.node;
        let found = self.integer_in(&node, min, max);
        if found.is_none() {
            self.report_wrong_type(key, &format!("an integer from {min} to {max}"), &node);
        }
        found
    }

    /// Returns the integer of a node if it is between two inclusive bounds. Reports nothing.
    pub(crate) fn integer_in(&mut self, node: &Node, min: u64, max: u64) -> Option<u64> {
        match convert_variable(node.clone()).value {
            Value::Int(it) => u64::try_from(it).ok().filter(|it| (min..=max).contains(it)),
            _ => None,
        }
    }

    /// Returns the number of a node if it is above 0. Reports nothing.
    pub(crate) fn positive_number(&mut self, node: &Node) -> Option<f64> {
        as_number(&convert_variable(node.clone())).filter(|it| *it > 0.0 && it.is_finite())
    }

    /// Reads a number between two inclusive bounds.
    pub(crate) fn number(&mut self, key: &str, field: Option<Field>, min: f64, max: f64) -> Option<f64> {
        let node = convert_variable(field?.node);
        let found = as_number(&node).filter(|it| (min..=max).contains(it));
        if found.is_none() {
            self.report_wrong_type(key, &format!("a number from {min} to {max}"), &node);
        }
        found
    }

    pub(crate) fn seconds(&mut self, key: &str, field: Option<Field>) -> Option<Duration> {
        self.seconds_up_to(key, field, MAX_TIMEOUT_SECONDS as f64)
    }

    /// Reads a number of seconds above 0, at most `max`.
    pub(crate) fn seconds_up_to(&mut self, key: &str, field: Option<Field>, max: f64) -> Option<Duration> {
        let node = convert_variable(field?.node);
        let found = as_number(&node)
            .filter(|it| *it > 0.0 && *it <= max)
            .and_then(|it| Duration::try_from_secs_f64(it).ok())
            .filter(|it| !it.is_zero());
        if found.is_none() {
            self.report_wrong_type(key, &format!("a number of seconds above 0, at most {max}"), &node);
        }
        found
    }

    /// Reads a list of strings.
    pub(crate) fn texts(&mut self, key: &str, field: Option<Field>) -> Option<Placed<Vec<PlacedString>>> {
        let node = field?.node;
        let Value::Seq(items) = node.value else {
            self.report_wrong_type(key, "a list of strings", &node);
            return None;
        };
        let mut all_fit = true;
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match item.value {
                Value::Str(it) if it.text.expose().contains('\0') => {
                    self.diagnostics.nul_byte(item.at, self.class, key);
                    all_fit = false;
                }
                Value::Str(it) => texts.push(Placed::new(it.text, item.at)),
                _ => {
                    self.diagnostics.wrong_item(self.class, key, "a list of strings", &item);
                    all_fit = false;
                }
            }
        }
        all_fit.then(|| Placed::new(texts, node.at))
    }

    /// Reads a mapping of strings. A key with a null value is skipped.
    pub(crate) fn text_map(&mut self, key: &str, field: Option<Field>) -> Option<StringPairs> {
        let node = field?.node;
        let Value::Map(pairs) = node.value else {
            self.report_wrong_type(key, "a mapping of strings", &node);
            return None;
        };
        let mut texts = Vec::with_capacity(pairs.len());
        for pair in pairs {
            match pair.node.value {
                Value::Null => {}
                Value::Str(it) => {
                    texts.push((Placed::new(pair.key, pair.key_at), Placed::new(it.text, pair.node.at)));
                }
                Value::Broken => {
                    let nothing = Placed::new(MaskedString::plain(""), pair.node.at);
                    texts.push((Placed::new(pair.key, pair.key_at), nothing));
                }
                // Keep checking the other pairs, because their names may be wrong too.
                _ => self.diagnostics.wrong_item(self.class, key, "a mapping of strings", &pair.node),
            }
        }
        Some(texts)
    }

    /// Reads a mapping of arbitrary JSON values.
    pub(crate) fn json(&mut self, key: &str, field: Option<Field>) -> Option<ServerConfig> {
        let node = field?.node;
        match &node.value {
            Value::Map(_) => self.fits_json(key, &node).then(|| ServerConfig::of(&node)),
            _ => {
                self.report_wrong_type(key, "a mapping", &node);
                None
            }
        }
    }

    /// Reads any JSON value.
    pub(crate) fn any_json(&mut self, key: &str, field: Field) -> Option<ServerConfig> {
        self.fits_json(key, &field.node).then(|| ServerConfig::of(&field.node))
    }

    /// Returns whether JSON can represent the whole tree. Reports every number that it cannot.
    fn fits_json(&mut self, key: &str, node: &Node) -> bool {
        let fits = match &node.value {
            Value::Int(it) => Number::from_i128(*it).is_some(),
            Value::Float(it) => it.is_finite(),
            Value::Seq(items) => {
                return items.iter().filter(|it| !self.fits_json(key, it)).count() == 0;
            }
            Value::Map(pairs) => {
                return pairs.iter().filter(|it| !self.fits_json(key, &it.node)).count() == 0;
            }
            Value::Null | Value::Bool(_) | Value::Str(_) => true,
            Value::Broken => return false,
        };
        if !fits {
            self.diagnostics.not_a_json_number(node.at, self.class, key);
        }
        fits
    }

    pub(crate) fn report_wrong_type(&mut self, key: &str, expected: &str, node: &Node) {
        self.diagnostics.wrong_type(self.class, key, expected, node);
    }
}

/// Converts a string that was wholly one variable to the type its value would have if written unquoted.
fn convert_variable(node: Node) -> Node {
    match node.value {
        Value::Str(ref it) if it.is_variable => match scalar::resolve(it.text.expose().trim()) {
            // A value that remains a string keeps its shown form.
            Value::Str(_) | Value::Null => node,
            value => Node { value, at: node.at },
        },
        _ => node,
    }
}

fn as_number(node: &Node) -> Option<f64> {
    match node.value {
        Value::Int(it) => Some(it as f64),
        Value::Float(it) => Some(it),
        _ => None,
    }
}
