//! The common document tree for YAML, JSON and TOML. Every key and value has a place in the source.

use super::place::Place;
use crate::masked_string::MaskedString;

/// A value with its place in the source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) at: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Str),
    Seq(Vec<Node>),
    Map(Vec<Pair>),
    /// A value whose error was already reported: an unset variable, an unknown tag or alias. It is accepted as every
    /// type, so one mistake gives one error.
    Broken,
}

/// A string, and whether it may be converted to a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Str {
    pub(crate) text: MaskedString,
    /// Whether the whole string was one `${VAR}`, so its value may be used as a number or boolean.
    pub(crate) is_variable: bool,
}

/// One `key: value` of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) key_at: Place,
    pub(crate) node: Node,
}

impl Node {
    /// Returns the value of `key`, if this is a mapping that contains it.
    pub(crate) fn child(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(pairs) => pairs.iter().find(|it| it.key == key).map(|it| &it.node),
            _ => None,
        }
    }
}

impl Value {
    pub(crate) fn plain(text: impl Into<String>) -> Value {
        Value::Str(Str { text: MaskedString::plain(text), is_variable: false })
    }
}
