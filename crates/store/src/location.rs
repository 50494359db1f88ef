//! The address of a database.

use std::{error::Error, fmt, path::PathBuf};

/// Address of a database, as written on the command line and in the settings.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// `sqlite:PATH`: a file on this machine.
    Sqlite(PathBuf),
    /// `postgres://…`, complete. It may contain a password, so it is never printed.
    Postgres(String),
}

/// Reason why an address is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationError {
    /// The scheme is unknown, or the path is missing.
    UnknownForm,
    /// `sqlite::memory:` is rejected, because it would lose all data at exit.
    InMemory,
    /// `sqlite:PATH?…` is rejected, because parameters are not supported.
    HasParameters,
}

impl Location {
    /// Parses an address.
    pub fn parse(address: &str) -> Result<Location, LocationError> {
        let is_postgres = ["postgres://", "postgresql://"].iter().any(|it| address.starts_with(it));
        match address.strip_prefix("sqlite:") {
            Some(path) if path.trim_start_matches('/').starts_with(":memory:") => {
                Err(LocationError::InMemory)
            }
            Some(path) if path.contains('?') => Err(LocationError::HasParameters),
            Some(path) if path.trim() != path => Err(LocationError::UnknownForm),
            Some(path) if !path.trim_start_matches('/').is_empty() => {
                // `sqlite:///absolute` and `sqlite:relative` are both common.
                let path = path.strip_prefix("//").unwrap_or(path);
                Ok(Location::Sqlite(PathBuf::from(path)))
            }
            None if is_postgres => Ok(Location::Postgres(address.to_owned())),
            _ => Err(LocationError::UnknownForm),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Location::Postgres(_) => f.write_str("postgres://***"),
        }
    }
}

impl fmt::Display for LocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocationError::UnknownForm => {}
            LocationError::InMemory => f.write_str("an in-memory database keeps nothing; ")?,
            LocationError::HasParameters => f.write_str("parameters after `?` are not supported; ")?,
        }
        f.write_str("a database address is `sqlite:PATH` or `postgres://user@host/name`")
    }
}

impl Error for LocationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for (address, expected) in [
            ("sqlite:todo.db", "sqlite:todo.db"),
            ("sqlite:/var/lib/todo.db", "sqlite:/var/lib/todo.db"),
            ("sqlite:///var/lib/todo.db", "sqlite:/var/lib/todo.db"),
            ("postgres://me:hunter2@db/todo", "postgres://***"),
            ("postgresql://db/todo", "postgres://***"),
        ] {
            let location = Location::parse(address).expect(address);
            assert_eq!(format!("{location:?}"), expected, "{address}");
        }
        for address in
            ["", "sqlite:", "sqlite:///", "sqlite: todo.db", "sqlitte:todo.db", "mysql://db", "todo.db"]
        {
            assert_eq!(Location::parse(address), Err(LocationError::UnknownForm), "{address}");
        }
        for address in ["sqlite::memory:", "sqlite://:memory:"] {
            assert_eq!(Location::parse(address), Err(LocationError::InMemory), "{address}");
        }
        assert_eq!(Location::parse("sqlite:todo.db?mode=ro"), Err(LocationError::HasParameters));
    }
}
