//! The type of a value, read from its JSON Schema: shows it, describes it in words, and converts typed text to JSON.
//!
//! A schema comes from a server and may contain anything. An unknown construct becomes [`Alternative::Unknown`], and
//! text stays text. The validation before the call and the server itself decide whether the value is valid.

mod reader;

use crate::content::printable;
pub(super) use reader::SchemaReader;
use serde_json::{Map, Number, Value, value::RawValue};

/// Maximum number of choices to show.
const MAX_CHOICES_SHOWN: usize = 8;

/// Limits of this size or more count as "no limit".
const UNLIMITED: f64 = 9_007_199_254_740_991.0;

/// The values that a schema accepts: any of these alternatives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueType {
    alternatives: Vec<Alternative>,
}

#[derive(Clone, Debug, PartialEq)]
enum Alternative {
    /// The schema does not state a type, or uses constructs that this module does not support.
    Unknown,
    Text,
    Integer(Limits),
    Number(Limits),
    Boolean,
    Null,
    Array(ValueType),
    Object,
    /// One value of an `enum`, or a `const`.
    Literal(Value),
}

/// The inclusive minimum and maximum of a number.
#[derive(Clone, Debug, Default, PartialEq)]
struct Limits {
    min: Option<Number>,
    max: Option<Number>,
}

impl ValueType {
    /// Converts typed text to JSON. `None` if it does not fit.
    pub(super) fn convert(&self, text: &str) -> Option<String> {
        let exact = self.choices().find(|it| match it {
            Value::String(choice) => choice == text,
            other => serde_json::to_string(other).is_ok_and(|it| it == text),
        });
        if let Some(exact) = exact {
            return Some(exact.to_string());
        }
        if self.alternatives.iter().any(|it| matches!(it, Alternative::Unknown | Alternative::Text)) {
            return Some(quote(text));
        }
        let scalar = self.alternatives.iter().find_map(|it| it.convert_scalar(text));
        // A list is written as `a,b` or as a JSON array.
        scalar.or_else(|| Some(format!("[{}]", self.items()?.elements(text)?.join(","))))
    }

    /// Converts repeated arguments to a JSON list. `None` if this is not a list; `Err` with the index of a text that
    /// does not fit.
    pub(super) fn convert_all(&self, texts: &[&str]) -> Option<Result<String, usize>> {
        let items = self.items()?;
        let mut all = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            match items.elements(text) {
                Some(elements) => all.extend(elements),
                None => return Some(Err(number)),
            }
        }
        Some(Ok(format!("[{}]", all.join(","))))
    }

    /// Describes the type in words: `a whole number from 1 to 5`.
    pub(super) fn expected(&self) -> String {
        let choices: Vec<String> = self.choices().map(format_choice).collect();
        let others = self.alternatives.iter().filter_map(|it| match it {
            Alternative::Literal(_) => None,
            Alternative::Unknown => Some("any value".to_owned()),
            Alternative::Text => Some("text".to_owned()),
            Alternative::Integer(limits) => Some(format!("a whole number{}", limits.describe_range())),
            Alternative::Number(limits) => Some(format!("a number{}", limits.describe_range())),
            Alternative::Boolean => Some("true or false".to_owned()),
            Alternative::Null => Some("null".to_owned()),
            Alternative::Array(items) => Some(format!("a list (of {})", items.expected())),
            Alternative::Object => Some("a JSON object".to_owned()),
        });
        let choices = (!choices.is_empty()).then(|| format!("one of {}", join_shortened(&choices, ", ")));
        choices.into_iter().chain(others).collect::<Vec<_>>().join(", or ")
    }

    /// Formats the type for a signature: `string[]`, `1..5`, `"low"|"high"`.
    pub(crate) fn label(&self) -> String {
        let choices: Vec<String> = self.choices().map(|it| printable(&it.to_string())).collect();
        let others = self.alternatives.iter().filter_map(|it| match it {
            Alternative::Literal(_) => None,
            Alternative::Unknown => Some("any".to_owned()),
            Alternative::Text => Some("string".to_owned()),
            Alternative::Integer(limits) => Some(limits.range().unwrap_or_else(|| "integer".to_owned())),
            Alternative::Number(limits) => {
                Some(limits.range().map_or_else(|| "number".to_owned(), |it| format!("number {it}")))
            }
            Alternative::Boolean => Some("boolean".to_owned()),
            Alternative::Null => Some("null".to_owned()),
            Alternative::Array(items) if items.alternatives.len() > 1 => {
                Some(format!("({})[]", items.label()))
            }
            Alternative::Array(items) => Some(format!("{}[]", items.label())),
            Alternative::Object => Some("object".to_owned()),
        });
        let choices = (!choices.is_empty()).then(|| join_shortened(&choices, "|"));
        choices.into_iter().chain(others).collect::<Vec<_>>().join("|")
    }

    /// Returns a valid value as JSON.
    pub(super) fn example(&self) -> String {
        self.alternatives.first().map_or_else(|| quote("text"), Alternative::example)
    }

    /// Returns the values of an `enum` or `const`.
    fn choices(&self) -> impl Iterator<Item = &Value> {
        self.alternatives.iter().filter_map(|it| match it {
            Alternative::Literal(value) => Some(value),
            _ => None,
        })
    }

    /// Returns the type of the items, if a list is accepted.
    fn items(&self) -> Option<&ValueType> {
        self.alternatives.iter().find_map(|it| match it {
            Alternative::Array(items) => Some(items),
            _ => None,
        })
    }

    /// Returns the JSON of each element.
    fn elements(&self, text: &str) -> Option<Vec<String>> {
        if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
            return Some(elements.into_iter().map(|it| it.get().to_owned()).collect());
        }
        if text.trim().is_empty() {
            return Some(Vec::new());
        }
        // An object or a list can contain commas, so the text is one element.
        let is_nested = |it: &Alternative| matches!(it, Alternative::Object | Alternative::Array(_));
        match self.alternatives.iter().any(is_nested) {
            true => self.convert(text).map(|it| vec![it]),
            false => text.split(',').map(|it| self.convert(it.trim())).collect(),
        }
    }
}

impl Alternative {
    /// Converts a value that is neither free text nor a list.
    fn convert_scalar(&self, text: &str) -> Option<String> {
        let fits = match self {
            Alternative::Integer(_) => is_integer(text),
            Alternative::Number(_) => is_number(text),
            Alternative::Boolean => matches!(text, "true" | "false"),
            Alternative::Null => text == "null",
            Alternative::Object => serde_json::from_str::<Map<String, Value>>(text).is_ok(),
            Alternative::Unknown | Alternative::Text | Alternative::Array(_) | Alternative::Literal(_) => {
                false
            }
        };
        fits.then(|| text.to_owned())
    }

    fn example(&self) -> String {
        match self {
            Alternative::Unknown | Alternative::Text => quote("text"),
            Alternative::Integer(limits) | Alternative::Number(limits) => limits.example(),
            Alternative::Boolean => "true".to_owned(),
            Alternative::Null => "null".to_owned(),
            Alternative::Array(items) => format!("[{}]", items.example()),
            Alternative::Object => r#"{"key":"value"}"#.to_owned(),
            Alternative::Literal(value) => value.to_string(),
        }
    }
}

impl Limits {
    fn of(schema: &Map<String, Value>) -> Limits {
        let limit = |key: &str| {
            let number = schema.get(key).and_then(Value::as_number);
            number.filter(|it| it.as_f64().is_some_and(|it| it.abs() < UNLIMITED)).cloned()
        };
        Limits { min: limit("minimum"), max: limit("maximum") }
    }

    fn describe_range(&self) -> String {
        match (&self.min, &self.max) {
            (Some(min), Some(max)) => format!(" from {min} to {max}"),
            (Some(min), None) => format!(", at least {min}"),
            (None, Some(max)) => format!(", at most {max}"),
            (None, None) => String::new(),
        }
    }

    /// Formats the range as `1..5`. `None` without limits.
    fn range(&self) -> Option<String> {
        let shown = |it: &Option<Number>| it.as_ref().map(Number::to_string).unwrap_or_default();
        (self.min.is_some() || self.max.is_some())
            .then(|| format!("{}..{}", shown(&self.min), shown(&self.max)))
    }

    /// Returns 2, or the limit nearest to it.
    fn example(&self) -> String {
        let beyond = |limit: &Option<Number>, side: fn(&f64, &f64) -> bool| {
            limit.clone().filter(|it| it.as_f64().is_some_and(|it| side(&it, &2.0)))
        };
        let nearest = beyond(&self.min, f64::gt).or_else(|| beyond(&self.max, f64::lt));
        nearest.map_or_else(|| "2".to_owned(), |it| it.to_string())
    }
}

/// Checks whether the text is a JSON number.
fn is_number(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    begins && text.trim_end() == text && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Checks whether the text is an integer. `2.0` counts as one.
fn is_integer(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    is_number(text) && !whole.contains(['e', 'E']) && fraction.bytes().all(|it| it == b'0')
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Formats a value as the user would type it.
fn format_choice(value: &Value) -> String {
    printable(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn join_shortened(words: &[String], separator: &str) -> String {
    match words.len() > MAX_CHOICES_SHOWN {
        true => format!("{}{separator}…", words[..MAX_CHOICES_SHOWN - 1].join(separator)),
        false => words.join(separator),
    }
}

#[cfg(test)]
mod tests;
