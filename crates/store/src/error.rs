//! What can go wrong with a database. One level, in small letters; an address is never repeated, because it may hold a
//! password.

use std::{error::Error, fmt};

/// Why the store could not do what it was asked to.
#[derive(Debug)]
pub enum StoreError {
    /// The database could not be opened or reached.
    Open(String),
    /// The database was made by a newer version of this program.
    Newer {
        /// The version of its tables.
        found: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// Something else has the same name or id.
    Conflict,
    /// The engine refused, or could not be reached any more.
    Engine(String),
}

impl StoreError {
    pub(crate) fn opening(error: &sqlx::Error) -> StoreError {
        StoreError::Open(say(error))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        let conflict = error.as_database_error().is_some_and(|it| it.is_unique_violation());
        if conflict { StoreError::Conflict } else { StoreError::Engine(say(&error)) }
    }
}

/// The innermost cause: what is around it only says that a database was involved.
fn say(error: &sqlx::Error) -> String {
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
                "the database is newer than this program: its tables are of version {found}, and {known} is the newest known here"
            ),
            StoreError::Conflict => f.write_str("there is one of this name already"),
            StoreError::Engine(why) => write!(f, "the database failed: {why}"),
        }
    }
}

impl Error for StoreError {}
