//! Databases for tests: a SQLite file and a PostgreSQL server.

use super::postgres::Postgres;
use tempfile::TempDir;

/// A database that is removed on drop.
pub(super) enum Engine {
    Sqlite(TempDir),
    Postgres(Postgres),
}

impl Engine {
    pub(super) fn sqlite() -> Engine {
        Engine::Sqlite(TempDir::new().expect("a folder"))
    }

    pub(super) fn postgres() -> Engine {
        Engine::Postgres(Postgres::start())
    }

    /// Returns the address for the command line.
    pub(super) fn address(&self) -> String {
        match self {
            Engine::Sqlite(folder) => format!("sqlite:{}", folder.path().join("todo.db").display()),
            Engine::Postgres(server) => server.address(),
        }
    }
}
