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

const CREATE_VERSIONS: &str = "CREATE TABLE IF NOT EXISTS wharf_schema (version BIGINT PRIMARY KEY)";
const SELECT_VERSION: &str = "SELECT coalesce(max(version), 0) FROM wharf_schema";

/// Key of the advisory lock. Any unused number works; this one is `wharf` in ASCII.
const LOCK: &str = "SELECT pg_advisory_xact_lock(512970878566)";

pub(crate) enum MigrationError {
    Engine(sqlx::Error),
    Newer(StoreError),
}

/// Runs the missing migrations. Both engines use it inside a transaction that excludes all other migrations.
macro_rules! catch_up {
    ($transaction:expr) => {{
        $transaction.execute(CREATE_VERSIONS).await?;
        let found: i64 = sqlx::query_scalar(SELECT_VERSION).fetch_one(&mut *$transaction).await?;
        let missing = missing_migrations(found)?;
        sqlx::raw_sql(AssertSqlSafe(missing)).execute(&mut *$transaction).await?;
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
    catch_up!(transaction);
    Ok(())
}

pub(crate) async fn postgres(options: &PgConnectOptions) -> Result<(), MigrationError> {
    let mut connection: PgConnection = options.connect().await?;
    let mut transaction = connection.begin().await?;
    transaction.execute(LOCK).await?;
    catch_up!(transaction);
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
