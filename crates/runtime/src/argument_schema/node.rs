//! The compiled form of a schema: nodes that refer to each other by index, so that a schema may be recursive.

use super::{equal, pattern::Pattern};
use serde_json::{Number, Value};
use std::collections::HashSet;

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(pub(super) u32);

impl Id {
    /// Node of the whole schema.
    pub(super) const ROOT: Id = Id(0);
}

/// Result of a check, ordered from best to worst. The result of a conjunction is its worst part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Validity {
    /// The value is valid.
    Valid,
    /// The value is valid, except for annotations such as `format` that a server may enforce.
    Annotated,
    /// The result could not be determined.
    Unknown,
    /// The value is invalid.
    Invalid,
}

/// One schema. All of its rules must hold.
#[derive(Debug, Default)]
pub(super) struct SchemaNode {
    /// OpenAPI's `nullable`. It is not part of JSON Schema, but authors use it.
    pub(super) nullable: bool,
    pub(super) rules: Vec<Rule>,
}

/// One keyword, or several that belong together.
#[derive(Debug)]
pub(super) enum Rule {
    /// The schema `false`.
    Never,
    Type(Types),
    Values(Box<Values>),
    Bound(Bound, Number),
    MultipleOf(Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Box<Pattern>),
    Members(Box<Members>),
    Names(Id),
    MinProperties(u64),
    MaxProperties(u64),
    /// Schema of every item of an array.
    Items(Id),
    MinItems(u64),
    MaxItems(u64),
    Unique,
    All(Vec<Id>),
    Any(Vec<Id>),
    One(Vec<Id>),
    Not(Id),
    Ref(Id),
    /// An annotation for values of these types.
    Annotated(Types),
    /// A keyword for values of these types that is not checked, with the reason.
    Unchecked(Types, &'static str),
}

/// Kind of a numeric limit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    AtLeast,
    AtMost,
    MoreThan,
    LessThan,
}

/// Rules for the members of an object.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Schemas by member name, sorted by name.
    pub(super) named: Vec<(String, Id)>,
    pub(super) patterns: Vec<(Pattern, Id)>,
    pub(super) additional: Option<Id>,
    pub(super) required: Vec<String>,
}

impl Members {
    pub(super) fn named(&self, name: &str) -> Option<Id> {
        let at = self.named.binary_search_by(|(other, _)| other.as_str().cmp(name)).ok()?;
        Some(self.named[at].1)
    }
}

/// Values of `enum`, or the single value of `const`.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) all: Vec<Value>,
    strings: HashSet<String>,
}

impl Values {
    pub(super) fn new(all: Vec<Value>) -> Values {
        let strings = all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Values { all, strings }
    }

    /// Returns whether `value` is one of them. `None` if that is uncertain or the steps are used up.
    pub(super) fn contain(&self, value: &Value, steps: &mut u32) -> Option<bool> {
        if let Value::String(text) = value {
            equal::spend(steps, equal::text_cost(text.len()))?;
            return Some(self.strings.contains(text));
        }
        let mut known = Some(false);
        for other in self.all.iter().filter(|it| !it.is_string()) {
            match equal::equal(value, other, steps) {
                Some(true) => return Some(true),
                Some(false) => {}
                None if *steps == 0 => return None,
                None => known = None,
            }
        }
        known
    }
}

/// A set of JSON types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Types = Types(0);
    pub(super) const NULL: Types = Types(1);
    pub(super) const BOOLEAN: Types = Types(2);
    pub(super) const INTEGER: Types = Types(4);
    /// Includes the integers.
    pub(super) const NUMBER: Types = Types(8 | 4);
    pub(super) const STRING: Types = Types(16);
    pub(super) const ARRAY: Types = Types(32);
    pub(super) const OBJECT: Types = Types(64);
    pub(super) const ANY: Types = Types(127);

    const NAMES: [(&str, Types, &str); 7] = [
        ("string", Types::STRING, "a string"),
        ("number", Types::NUMBER, "a number"),
        ("integer", Types::INTEGER, "an integer"),
        ("boolean", Types::BOOLEAN, "a boolean"),
        ("array", Types::ARRAY, "an array"),
        ("object", Types::OBJECT, "an object"),
        ("null", Types::NULL, "null"),
    ];

    pub(super) fn named(name: &str) -> Option<Types> {
        Types::NAMES.iter().find(|(other, ..)| *other == name).map(|(_, types, _)| *types)
    }

    #[must_use]
    pub(super) fn with(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub(super) fn hold(self, value: &Value) -> bool {
        let one = match value {
            Value::Null => Types::NULL.0,
            Value::Bool(_) => Types::BOOLEAN.0,
            Value::Number(number) if is_integer(number) => Types::INTEGER.0,
            Value::Number(_) => Types::NUMBER.0 & !Types::INTEGER.0,
            Value::String(_) => Types::STRING.0,
            Value::Array(_) => Types::ARRAY.0,
            Value::Object(_) => Types::OBJECT.0,
        };
        self.0 & one != 0
    }

    /// Returns a description such as `a string or null`.
    pub(super) fn in_words(self) -> String {
        let whole = |types: Types| self.0 & types.0 == types.0;
        let is_named = |types: Types| whole(types) && !(types == Types::INTEGER && whole(Types::NUMBER));
        let words: Vec<&str> =
            Types::NAMES.iter().filter(|(_, types, _)| is_named(*types)).map(|(.., word)| *word).collect();
        words.join(" or ")
    }
}

/// Returns whether a number is an integer. `1.0` is, because JSON has only one kind of number.
fn is_integer(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
}
