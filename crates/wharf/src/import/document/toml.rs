//! Parses Codex's TOML file into JSON values.

use crate::import::import_error::ImportError;
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// Parses a file. Dates become null, because no server setting is a date.
pub(crate) fn parse(text: &str) -> Result<Value, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table = DeTable::parse(text).map_err(|error| ImportError::NotToml(error.message().to_owned()))?;
    Ok(object(table.get_ref()))
}

fn object(table: &DeTable<'_>) -> Value {
    let pairs = table.iter().map(|(key, it)| (key.get_ref().to_string(), value(it.get_ref())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn value(found: &DeValue<'_>) -> Value {
    match found {
        DeValue::String(it) => Value::from(it.as_ref()),
        DeValue::Integer(it) => i64::from_str_radix(it.as_str(), it.radix()).map_or(Value::Null, Value::from),
        DeValue::Float(it) => it.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(it) => Value::from(*it),
        DeValue::Datetime(_) => Value::Null,
        DeValue::Array(items) => items.iter().map(|it| value(it.get_ref())).collect(),
        DeValue::Table(table) => object(table),
    }
}
