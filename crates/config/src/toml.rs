//! Parses TOML text into the common document tree, so that settings use the same readers and diagnostics as agent
//! files.

use super::{
    diagnostic::Diagnostics,
    node::{Node, Pair, Value},
    place::Place,
};
use std::ops::Range;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Parses a whole file. `None` means that a diagnostic was recorded.
pub(crate) fn parse(source: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(source);
    // Later errors are mostly consequences of the first.
    if let Some(error) = errors.first() {
        let at = error.span().map_or(Place::default(), place);
        diagnostics.syntax(at, error.message());
    }
    errors.is_empty().then(|| map(table.get_ref(), place(table.span())))
}

fn map(table: &DeTable<'_>, at: Place) -> Node {
    let pairs = table.iter().map(|(key, value)| Pair {
        key: key.get_ref().to_string(),
        key_at: place(key.span()),
        node: node(value),
    });
    Node { value: Value::Map(pairs.collect()), at }
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let at = place(value.span());
    let value = match value.get_ref() {
        DeValue::String(it) => Value::plain(it.as_ref()),
        DeValue::Integer(it) => {
            i128::from_str_radix(it.as_str(), it.radix()).map_or(Value::Float(f64::INFINITY), Value::Int)
        }
        DeValue::Float(it) => Value::Float(it.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(it) => Value::Bool(*it),
        // No setting is a date. Use a number that no setting accepts.
        DeValue::Datetime(_) => Value::Float(f64::NAN),
        DeValue::Array(items) => Value::Seq(items.iter().map(node).collect()),
        DeValue::Table(table) => return map(table, at),
    };
    Node { value, at }
}

fn place(span: Range<usize>) -> Place {
    Place::new(span.start, span.end)
}
