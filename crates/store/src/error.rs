//! Errors of the store.
//!
//! A message is one level deep and in lower case. It never contains a database address, because that may hold a
//! password.

use std::{error::Error, fmt};

/// Error of a store operation.
#[derive(Debug)]
pub enum StoreError {
    /// The database could not be opened or reached.
    Open(String),
    /// The database was made by a newer version of this program.
    Newer {
        /// Schema version of the database.
        found: i64,
        /// Newest schema version that this program supports.
        known: i64,
    },
    /// Another row has the same name or id.
    Conflict,
    /// The engine rejected the statement, or the connection failed.
    Engine(String),
    /// A file beside the database could not be read or written.
    File(String),
}

impl StoreError {
    pub(crate) fn opening(error: &sqlx::Error) -> StoreError {
        StoreError::Open(innermost_message(error))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        let conflict = error.as_database_error().is_some_and(|it| it.is_unique_violation());
        if conflict { StoreError::Conflict } else { StoreError::Engine(innermost_message(&error)) }
    }
}

/// Returns the innermost cause; the outer layers only say that it is a database error.
fn innermost_message(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::PoolTimedOut => "no connection became free in time".to_owned(),
        other => other.to_string(),
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Open(why) => write!(f, "the database cannot be opened: {why}"),
            StoreError::Newer { found, known } => write!(
                f,
                "the database is newer than this program: its schema version is {found}, and this program supports up to {known}"
            ),
            StoreError::Conflict => f.write_str("a row with this name or id already exists"),
            StoreError::Engine(why) => write!(f, "the database failed: {why}"),
            StoreError::File(why) => write!(f, "a file beside the database failed: {why}"),
        }
    }
}

impl Error for StoreError {}
