//! Parses the arguments of a call on the command line: `key=value`, `key:=JSON`, and whole objects.
//!
//! Converts each value according to the tool's schema: `priority=2` is a number if the tool takes a number. Values
//! stay JSON text, so that numbers keep every digit.

mod parameters;
mod value_type;

use crate::content::printable;
pub(crate) use parameters::{Parameter, Parameters};
use std::{
    fs,
    io::{self, Read},
};
use wharf_config::closest;
use wharf_mcp::Raw;

/// Maximum size of an object read from a file or standard input, in bytes.
const MAX_ARGUMENTS_BYTES: u64 = 16 * 1024 * 1024;

/// Arguments as typed, before conversion.
#[derive(Debug, Default)]
pub(crate) struct TypedArguments {
    /// The members of `--args`, as names and JSON text.
    whole: Vec<(String, String)>,
    pairs: Vec<TypedPair>,
}

#[derive(Debug)]
struct TypedPair {
    key: String,
    value: TypedValue,
}

#[derive(Debug)]
enum TypedValue {
    /// `key=text`
    Text(String),
    /// `key:=JSON`
    Json(String),
}

/// An error in the arguments, and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentError {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl TypedArguments {
    /// Parses the typed arguments, without a schema.
    pub(crate) fn read(whole: Option<&str>, pairs: &[String]) -> Result<TypedArguments, ArgumentError> {
        Ok(TypedArguments {
            whole: whole.map_or_else(|| Ok(Vec::new()), parse_args_option)?,
            pairs: pairs.iter().map(|it| parse_pair(it)).collect::<Result<_, _>>()?,
        })
    }

    /// Converts the arguments to one object. A pair overrides the member of `--args` with the same name.
    pub(crate) fn to_object(&self, tool: &str, parameters: &Parameters) -> Result<Raw, Vec<ArgumentError>> {
        let (mut members, mut errors) = (self.whole.clone(), Vec::new());
        let mut keys: Vec<&str> = Vec::new();
        for TypedPair { key, .. } in &self.pairs {
            if !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
        for key in keys {
            let values: Vec<&TypedValue> =
                self.pairs.iter().filter(|it| it.key == key).map(|it| &it.value).collect();
            match convert(tool, key, &values, parameters) {
                Ok(json) => {
                    members.retain(|(name, _)| name != key);
                    members.push((key.to_owned(), json));
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(join_members(&members)) } else { Err(errors) }
    }

    /// Returns the names of the typed pairs.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|it| it.key.as_str())
    }
}

/// Converts the values of one argument to JSON.
fn convert(
    tool: &str,
    key: &str,
    values: &[&TypedValue],
    parameters: &Parameters,
) -> Result<String, ArgumentError> {
    let texts: Option<Vec<&str>> = values.iter().map(|it| it.as_text()).collect();
    let parameter = parameters.find(key);
    match (values, texts, parameter) {
        ([TypedValue::Json(json)], ..) => Ok(json.clone()),
        (_, Some(_), None) if !parameters.is_open => Err(unknown_argument(tool, key, parameters)),
        ([TypedValue::Text(text)], _, None) => Ok(serde_json::Value::from(text.as_str()).to_string()),
        ([TypedValue::Text(text)], _, Some(parameter)) => {
            parameter.value_type.convert(text).ok_or_else(|| type_mismatch(key, text, parameter))
        }
        (_, Some(texts), Some(parameter)) => match parameter.value_type.convert_all(&texts) {
            Some(Ok(list)) => Ok(list),
            Some(Err(number)) => Err(type_mismatch(key, texts[number], parameter)),
            None => Err(repeated_argument(key)),
        },
        _ => Err(repeated_argument(key)),
    }
}

fn type_mismatch(key: &str, text: &str, parameter: &Parameter) -> ArgumentError {
    let expected = parameter.value_type.expected();
    ArgumentError {
        message: format!("'{}' does not fit `{}`: expected {expected}", printable(text), printable(key)),
        hint: Some(format!("for example {} (`:=` takes the value as JSON)", parameter.json_example())),
    }
}

fn unknown_argument(tool: &str, key: &str, parameters: &Parameters) -> ArgumentError {
    let key = printable(key);
    let names: Vec<&str> = parameters.list.iter().map(|it| it.name.as_str()).collect();
    let hint = match closest(&key, names.iter().copied()) {
        Some(meant) => format!("did you mean `{}`?", printable(meant)),
        None if names.is_empty() => "it takes no arguments".to_owned(),
        None => format!("it takes {}", printable(&names.join(", "))),
    };
    ArgumentError { message: format!("`{}` has no argument `{key}`", printable(tool)), hint: Some(hint) }
}

fn repeated_argument(key: &str) -> ArgumentError {
    ArgumentError {
        message: format!("the argument `{}` is given twice", printable(key)),
        hint: Some("only a list can be given item by item".to_owned()),
    }
}

/// Parses `key=text` or `key:=JSON`, whichever separator comes first.
fn parse_pair(pair: &str) -> Result<TypedPair, ArgumentError> {
    let malformed = || {
        ArgumentError::new(format!("'{}' is not an argument; write key=value, or key:=JSON", printable(pair)))
    };
    let (key, value) = pair.split_once('=').ok_or_else(malformed)?;
    let (key, value) = match key.strip_suffix(':') {
        None => (key, TypedValue::Text(value.to_owned())),
        Some(key) => {
            let json = Raw::parse(value.to_owned()).map_err(|error| {
                ArgumentError::new(format!("the value of '{}' is not JSON: {error}", printable(key)))
            })?;
            (key, TypedValue::Json(json.as_str().to_owned()))
        }
    };
    if key.is_empty() { Err(malformed()) } else { Ok(TypedPair { key: key.to_owned(), value }) }
}

fn parse_args_option(whole: &str) -> Result<Vec<(String, String)>, ArgumentError> {
    let text = match whole.strip_prefix('@') {
        Some(file) => {
            let unreadable =
                |error: io::Error| ArgumentError::new(format!("'{file}' cannot be read: {error}"));
            read_bounded(fs::File::open(file).map_err(unreadable)?).map_err(unreadable)?
        }
        None if whole == "-" => read_bounded(io::stdin().lock())
            .map_err(|error| ArgumentError::new(format!("standard input cannot be read: {error}")))?,
        None => whole.to_owned(),
    };
    let raw = Raw::parse(text).map_err(|error| ArgumentError::new(format!("--args is not JSON: {error}")))?;
    if !raw.is_object() {
        return Err(ArgumentError::new("--args must be a JSON object".to_owned()));
    }
    let mut members: Vec<(String, String)> = Vec::new();
    for (name, value) in raw.members().0 {
        // Of duplicate names, the last wins, as in most JSON libraries.
        members.retain(|(known, _)| *known != name);
        members.push((name.into_owned(), value.get().to_owned()));
    }
    Ok(members)
}

fn read_bounded(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(MAX_ARGUMENTS_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_ARGUMENTS_BYTES {
        Err(io::Error::other("it is larger than 16 MiB"))
    } else {
        Ok(text)
    }
}

fn join_members(members: &[(String, String)]) -> Raw {
    let members: Vec<String> = members
        .iter()
        .map(|(name, json)| format!("{}:{json}", serde_json::Value::from(name.as_str())))
        .collect();
    // Every part is valid JSON, so the object is too. If it were not, send no arguments rather than wrong ones.
    Raw::parse(format!("{{{}}}", members.join(","))).unwrap_or_else(|_| Raw::empty_object())
}

impl TypedValue {
    fn as_text(&self) -> Option<&str> {
        match self {
            TypedValue::Text(text) => Some(text),
            TypedValue::Json(_) => None,
        }
    }
}

impl ArgumentError {
    fn new(message: String) -> ArgumentError {
        ArgumentError { message, hint: None }
    }
}

#[cfg(test)]
mod tests;
