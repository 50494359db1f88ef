//! Builds SQL for both engines from constant text and bound values.
//!
//! Text is always `&'static str`, so user input cannot become SQL.

use memchr::memchr;
use std::sync::Arc;

/// A SQL statement and its bound values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

/// A value to bind.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Int(Option<i64>),
    Real(f64),
    Text(Option<Arc<str>>),
    Bool(bool),
    Bytes(Option<Vec<u8>>),
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Statement {
        Statement { sql: sql.to_owned(), values: Vec::new() }
    }

    /// Joins statements into one text, which only SQLite accepts with bound values.
    pub(crate) fn join(statements: Vec<Statement>) -> Statement {
        let sql = statements.iter().map(|it| it.sql.as_str()).collect::<Vec<_>>().join("; ");
        Statement { sql, values: statements.into_iter().flat_map(|it| it.values).collect() }
    }

    /// Appends SQL text.
    pub(crate) fn sql(mut self, sql: &'static str) -> Statement {
        self.sql.push_str(sql);
        self
    }

    /// Appends a placeholder and binds a value to it.
    pub(crate) fn value(mut self, value: impl Into<Value>) -> Statement {
        self.values.push(value.into());
        self.sql.push('?');
        self
    }

    /// Converts the placeholders to `$1`, `$2`, … for PostgreSQL. SQLite also accepts numbers, but looks each one
    /// up in a list, which is slow for a batch with thousands of values.
    pub(crate) fn numbered(sql: &str) -> String {
        let mut text = String::with_capacity(2 * sql.len());
        for (number, piece) in sql.split('?').enumerate() {
            if number > 0 {
                text.push('$');
                text.push_str(&number.to_string());
            }
            text.push_str(piece);
        }
        text
    }

    /// Appends values, separated by commas.
    pub(crate) fn values(self, values: impl IntoIterator<Item = Value>) -> Statement {
        values.into_iter().enumerate().fold(self, |statement, (place, value)| {
            let comma = if place == 0 { "" } else { ", " };
            statement.sql(comma).value(value)
        })
    }

    /// Appends a list of rows for `VALUES`.
    pub(crate) fn rows<const N: usize>(
        mut self,
        rows: impl ExactSizeIterator<Item = [Value; N]>,
    ) -> Statement {
        let row = format!("({}), ", ["?"; N].join(", "));
        self.sql.push_str(row.repeat(rows.len()).trim_end_matches(", "));
        self.values.reserve(N * rows.len());
        rows.for_each(|row| self.values.extend(row));
        self
    }

    /// Appends ` AND condition value` if there is a value. The statement must already have a `WHERE`.
    pub(crate) fn and(self, condition: &'static str, value: Option<impl Into<Value>>) -> Statement {
        match value {
            Some(value) => self.sql(" AND ").sql(condition).value(value),
            None => self,
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(Some(value))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Value {
        Value::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Some(value).into()
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Some(value).into()
    }
}

impl From<Option<&str>> for Value {
    fn from(value: Option<&str>) -> Value {
        value.map(Arc::<str>::from).into()
    }
}

impl From<Option<String>> for Value {
    fn from(value: Option<String>) -> Value {
        value.as_deref().into()
    }
}

impl From<Arc<str>> for Value {
    fn from(value: Arc<str>) -> Value {
        Some(value).into()
    }
}

impl From<Option<Arc<str>>> for Value {
    /// Replaces U+0000, which PostgreSQL cannot store. Otherwise one such character would fail a whole batch.
    fn from(value: Option<Arc<str>>) -> Value {
        Value::Text(value.map(|it| match memchr(0, it.as_bytes()) {
            Some(_) => it.replace('\0', "\u{fffd}").into(),
            None => it,
        }))
    }
}

impl From<Option<Vec<u8>>> for Value {
    fn from(value: Option<Vec<u8>>) -> Value {
        Value::Bytes(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_in_order() {
        let statement = Statement::new("SELECT ").values([1_i64.into(), "?".into()]).and("a = ", Some(2_i64));
        assert_eq!(statement.sql, "SELECT ?, ? AND a = ?");
        assert_eq!(Statement::numbered(&statement.sql), "SELECT $1, $2 AND a = $3");
    }
}
