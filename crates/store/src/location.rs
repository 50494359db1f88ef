//! Where a database is.

use std::{error::Error, fmt, path::PathBuf};

/// The address of a database, as it is written on the command line and in settings.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// `sqlite:PATH`: a file on this machine.
    Sqlite(PathBuf),
    /// `postgres://…`, whole: it holds a password, so it is never printed.
    Postgres(String),
}

/// An address that names no database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationError;

impl Location {
    /// Reads an address.
    pub fn parse(address: &str) -> Result<Location, LocationError> {
        let is_postgres = ["postgres://", "postgresql://"].iter().any(|it| address.starts_with(it));
        match address.strip_prefix("sqlite:") {
            Some(path) if !path.trim_start_matches('/').is_empty() => {
                // `sqlite:///absolute` and `sqlite:relative` are both common.
                let path = path.strip_prefix("//").unwrap_or(path);
                Ok(Location::Sqlite(PathBuf::from(path)))
            }
            None if is_postgres => Ok(Location::Postgres(address.to_owned())),
            _ => Err(LocationError),
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
        f.write_str("a database is written `sqlite:PATH` or `postgres://user@host/name`")
    }
}

impl Error for LocationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
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
        for address in ["", "sqlite:", "sqlite:///", "mysql://db", "todo.db"] {
            assert_eq!(Location::parse(address), Err(LocationError), "{address}");
        }
    }
}
