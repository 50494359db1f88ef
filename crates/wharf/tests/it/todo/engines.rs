//! Databases for tests: a file, and a server.

use super::postgres::Postgres;
use tempfile::TempDir;

/// A database that goes away with the test.
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

    /// As it is written on the command line.
    pub(super) fn address(&self) -> String {
        match self {
            Engine::Sqlite(folder) => format!("sqlite:{}", folder.path().join("todo.db").display()),
            Engine::Postgres(server) => server.address(),
        }
    }
}
