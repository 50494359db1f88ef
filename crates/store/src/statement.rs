//! SQL that is the same for both engines: text from this program, and values that are always bound.
//!
//! Text is `&'static str` and nothing else, so what a user wrote cannot become SQL.

/// A statement being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
}

/// What can be bound.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Int(Option<i64>),
    Real(f64),
    Text(Option<String>),
    Bool(bool),
    Bytes(Option<Vec<u8>>),
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Statement {
        Statement { sql: sql.to_owned(), values: Vec::new() }
    }

    /// More text.
    pub(crate) fn sql(mut self, sql: &'static str) -> Statement {
        self.sql.push_str(sql);
        self
    }

    /// A value, where it stands.
    pub(crate) fn value(mut self, value: impl Into<Value>) -> Statement {
        self.values.push(value.into());
        self.sql.push('?');
        self
    }

    /// The text for PostgreSQL, which numbers its values. SQLite could read numbers too, but looks each of them up in a
    /// list, and a batch has thousands.
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

    /// Values with commas between them.
    pub(crate) fn values(self, values: impl IntoIterator<Item = Value>) -> Statement {
        values.into_iter().enumerate().fold(self, |statement, (place, value)| {
            let comma = if place == 0 { "" } else { ", " };
            statement.sql(comma).value(value)
        })
    }

    /// One more condition, after a `WHERE` that stands already.
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
        value.map(str::to_owned).into()
    }
}

impl From<Option<String>> for Value {
    /// PostgreSQL's text cannot hold U+0000. One such character must not lose a whole batch.
    fn from(value: Option<String>) -> Value {
        Value::Text(value.map(|it| if it.contains('\0') { it.replace('\0', "\u{fffd}") } else { it }))
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
