//! A document as a tree in which everything knows its place. YAML, JSON and TOML all become this.

use super::place::Place;
use crate::text::Text;

/// A value and where it stands.
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
    /// A value that already has its error: an unset variable, an unknown tag or alias. It fits every type and means
    /// nothing, so one mistake gives one error.
    Broken,
}

/// A string, and whether it may still turn out to be a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Str {
    pub(crate) text: Text,
    /// The string was wholly one `${VAR}`, so its value may fill a number or a boolean.
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
    /// What a mapping holds under this key.
    pub(crate) fn child(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(pairs) => pairs.iter().find(|it| it.key == key).map(|it| &it.node),
            _ => None,
        }
    }
}

impl Value {
    pub(crate) fn plain(text: impl Into<String>) -> Value {
        Value::Str(Str { text: Text::plain(text), is_variable: false })
    }
}
