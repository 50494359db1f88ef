//! Migrates the tables to the current schema version.
//!
//! Each migration runs once, in order, in the process that gets the lock first. There are no down migrations.

use crate::StoreError;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, SqliteConnection,
    postgres::PgConnectOptions,
};

/// All migrations. A released migration never changes; new ones are appended.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_todos.sql"),
    include_str!("../migrations/0002_sources.sql"),
    include_str!("../migrations/0003_calls.sql"),
    include_str!("../migrations/0004_promises.sql"),
    include_str!("../migrations/0005_principals.sql"),
    include_str!("../migrations/0011_fewer_indexes.sql"),
    include_str!("../migrations/0012_breakers.sql"),
    include_str!("../migrations/0013_sessions.sql"),
    include_str!("../migrations/0014_via.sql"),
    include_str!("../migrations/0015_keys.sql"),
    include_str!("../migrations/0020_console_credentials.sql"),
    include_str!("../migrations/0016_conversations.sql"),
    include_str!("../migrations/0025_accepted_definitions.sql"),
    include_str!("../migrations/0021_call_details.sql"),
    include_str!("../migrations/0022_tool_definitions.sql"),
    include_str!("../migrations/0035_results.sql"),
    include_str!("../migrations/0036_tool_history.sql"),
];

/// The tables as all migrations leave them in SQLite, which creates them from this text in a third of the time. A test
/// compares both; `UPDATE=1` rewrites the file.
const NEW_SQLITE: &str = include_str!("../migrations/new_sqlite.sql");

const CREATE_VERSIONS: &str = "CREATE TABLE IF NOT EXISTS wharf_schema (version BIGINT PRIMARY KEY)";
const SELECT_VERSION: &str = "SELECT coalesce(max(version), 0) FROM wharf_schema";

/// Key of the advisory lock. Any unused number works; this one is `wharf` in ASCII.
const LOCK: &str = "SELECT pg_advisory_xact_lock(512970878566)";

pub(crate) enum MigrationError {
    Engine(sqlx::Error),
    Newer(StoreError),
}

/// Runs what is missing since the version that is found. Both engines use it inside a transaction that excludes all other
/// migrations.
macro_rules! catch_up {
    ($transaction:expr, $missing_since:expr) => {{
        $transaction.execute(CREATE_VERSIONS).await?;
        let found: i64 = sqlx::query_scalar(SELECT_VERSION).fetch_one(&mut *$transaction).await?;
        sqlx::raw_sql(AssertSqlSafe($missing_since(found)?)).execute(&mut *$transaction).await?;
        $transaction.commit().await?;
    }};
}

/// Migrates a SQLite database. A database that is up to date needs no write lock.
pub(crate) async fn sqlite(connection: &mut SqliteConnection) -> Result<(), MigrationError> {
    let found = sqlx::query_scalar::<_, i64>(SELECT_VERSION).fetch_one(&mut *connection).await;
    if found.is_ok_and(|it| it == MIGRATIONS.len() as i64) {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    catch_up!(transaction, missing_on_sqlite);
    Ok(())
}

pub(crate) async fn postgres(options: &PgConnectOptions) -> Result<(), MigrationError> {
    let mut connection: PgConnection = options.connect().await?;
    let mut transaction = connection.begin().await?;
    transaction.execute(LOCK).await?;
    catch_up!(transaction, missing_migrations);
    Ok(connection.close().await?)
}

/// Returns all missing migrations as one text, because SQLite wakes two threads for each that is sent.
fn missing_migrations(found: i64) -> Result<String, MigrationError> {
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(MigrationError::Newer(StoreError::Newer { found, known }));
    }
    let missing = (1..).zip(MIGRATIONS).skip_while(|(version, _)| *version <= found);
    let with_version = |(version, migration): (i64, &&str)| {
        let migration = migration.trim_end().trim_end_matches(';');
        format!("{migration};\nINSERT INTO wharf_schema (version) VALUES ({version});\n")
    };
    Ok(missing.map(with_version).collect())
}

/// Returns all missing migrations, or for an empty database the tables as they leave them.
fn missing_on_sqlite(found: i64) -> Result<String, MigrationError> {
    if found > 0 {
        return missing_migrations(found);
    }
    let versions: Vec<String> = (1..=MIGRATIONS.len()).map(|it| format!("({it})")).collect();
    Ok(format!("{NEW_SQLITE}\nINSERT INTO wharf_schema (version) VALUES {};\n", versions.join(", ")))
}

impl From<MigrationError> for StoreError {
    fn from(trouble: MigrationError) -> StoreError {
        match trouble {
            MigrationError::Engine(error) => StoreError::opening(&error),
            MigrationError::Newer(newer) => newer,
        }
    }
}

impl From<sqlx::Error> for MigrationError {
    fn from(error: sqlx::Error) -> MigrationError {
        MigrationError::Engine(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{Row, sqlite::SqliteConnectOptions};
    use std::{env, fs, path::Path};

    const FILE: &str = "migrations/new_sqlite.sql";

    /// Tables, indexes and their text, and the rows that migrations insert.
    async fn describe(text: &str) -> (Vec<[String; 3]>, Vec<i64>, Vec<(String, i64)>) {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SqliteConnectOptions::new().filename(folder.path().join("db")).create_if_missing(true);
        let mut connection = options.connect().await.expect("a database");
        connection.execute(CREATE_VERSIONS).await.expect("a table");
        sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut connection).await.expect("valid SQL");
        let objects = "SELECT type, name, coalesce(sql, '') FROM sqlite_master ORDER BY rowid";
        let objects = connection.fetch_all(objects).await.expect("rows");
        let versions =
            connection.fetch_all("SELECT version FROM wharf_schema ORDER BY 1").await.expect("rows");
        let counters =
            connection.fetch_all("SELECT name, value FROM counters ORDER BY 1").await.expect("rows");
        (
            objects.iter().map(|it| [0, 1, 2].map(|at| it.get(at))).collect(),
            versions.iter().map(|it| it.get(0)).collect(),
            counters.iter().map(|it| (it.get(0), it.get(1))).collect(),
        )
    }

    #[tokio::test]
    async fn a_new_database_has_the_tables_of_all_migrations() {
        let known =
            |text: Result<String, MigrationError>| text.unwrap_or_else(|_| unreachable!("0 is known"));
        let (objects, versions, counters) = describe(&known(missing_migrations(0))).await;
        let own = "wharf_schema";
        let texts = objects.iter().filter(|[_, name, text]| !text.is_empty() && name != own);
        let tables: String = texts.map(|[_, _, text]| format!("{text};\n")).collect();
        let rows: String = counters
            .iter()
            .map(|(name, value)| format!("INSERT INTO counters (name, value) VALUES ('{name}', {value});\n"))
            .collect();
        let note = "-- Written by `UPDATE=1 cargo test -p wharf-store new_database`. The other files are the source.\n";
        let expected = format!("{note}{tables}{rows}");
        #[expect(clippy::disallowed_methods, reason = "a test asks whether to rewrite its file")]
        if env::var_os("UPDATE").is_some() {
            fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE), &expected)
                .expect("the file is written");
            return;
        }
        assert_eq!(NEW_SQLITE, expected, "run `UPDATE=1 cargo test -p wharf-store new_database`");
        let (new_objects, new_versions, new_counters) = describe(&known(missing_on_sqlite(0))).await;
        let sorted = |mut objects: Vec<[String; 3]>| {
            objects.sort();
            objects
        };
        assert_eq!(sorted(new_objects), sorted(objects));
        assert_eq!((new_versions, new_counters), (versions, counters));
    }
}
