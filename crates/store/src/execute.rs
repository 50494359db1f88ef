//! Runs statements on the engine in use and passes on their rows.
//!
//! These functions do not know the type of a row, and their futures are boxed. So sqlx is compiled once, in this crate,
//! and not once for each type of row in the crate that awaits the result.

use crate::{
    Store, StoreError, change,
    rows::EngineRow,
    sqlite::Durability,
    statement::{Statement, Value},
    store::{Pools, StoreFuture},
};
use futures_util::TryStreamExt;
use sqlx::{Arguments, AssertSqlSafe, Connection, PgPool, postgres::PgArguments, sqlite::SqliteArguments};

/// Receives the rows of a statement and returns whether it needs more.
pub(crate) type RowSink<'a> = dyn FnMut(EngineRow<'_>) -> sqlx::Result<bool> + Send + 'a;

/// A running statement.
pub(crate) type Execution<'a> = StoreFuture<'a, Result<(), StoreError>>;

/// Builds the query of a statement.
macro_rules! query {
    ($arguments:ty, $statement:expr) => {{
        let Statement { sql, values } = $statement;
        let mut arguments = <$arguments>::default();
        arguments.reserve(values.len(), 0);
        let added = values.into_iter().try_for_each(|value| match value {
            Value::Int(it) => arguments.add(it),
            Value::Real(it) => arguments.add(it),
            Value::Text(it) => arguments.add(it),
            Value::Bool(it) => arguments.add(it),
            Value::Bytes(it) => arguments.add(it),
        });
        added.map_err(sqlx::Error::Encode)?;
        sqlx::query_with(AssertSqlSafe(sql), arguments)
    }};
}

/// Runs one statement and passes its rows to `sink` until it returns false.
macro_rules! pass_rows {
    (Sqlite, $statement:expr, $executor:expr, $sink:expr) => {
        pass_rows!(SqliteArguments, EngineRow::Sqlite, $statement, $executor, $sink)
    };
    (Postgres, $statement:expr, $executor:expr, $sink:expr) => {
        pass_rows!(PgArguments, EngineRow::Postgres, $statement, $executor, $sink)
    };
    ($arguments:ty, $row:path, $statement:expr, $executor:expr, $sink:expr) => {{
        let mut rows = query!($arguments, $statement).fetch($executor);
        while let Some(row) = rows.try_next().await? {
            if !$sink($row(&row))? {
                break;
            }
        }
    }};
}

/// Runs the statements in order, passes the rows of the last one to `sink`, and commits.
macro_rules! pass_rows_of_last {
    ($engine:ident, $statements:expr, $transaction:expr, $sink:expr) => {{
        let mut statements = $statements.into_iter().peekable();
        while let Some(statement) = statements.next() {
            let is_last = statements.peek().is_none();
            let mut sink = |row: EngineRow<'_>| if is_last { $sink(row) } else { Ok(true) };
            pass_rows!($engine, statement, &mut *$transaction, sink);
        }
        $transaction.commit().await?;
    }};
}

impl Store {
    /// Runs a query and passes each row to `sink` until it returns false.
    pub(crate) fn fetch<'a>(&'a self, statement: Statement, sink: &'a mut RowSink<'_>) -> Execution<'a> {
        let statement = self.for_engine(statement);
        Box::pin(async move {
            match &self.pools {
                Pools::Sqlite(files) => {
                    let mut connection = files.readers.acquire().await?;
                    pass_rows!(Sqlite, statement, &mut *connection, sink);
                    connection.release();
                }
                Pools::Postgres(pool) => pass_rows!(Postgres, statement, pool, sink),
            }
            Ok(())
        })
    }

    /// Runs one statement without a transaction.
    pub(crate) fn execute_alone<'a>(
        &'a self,
        durability: Durability,
        statement: Statement,
        sink: &'a mut RowSink<'_>,
    ) -> Execution<'a> {
        let statement = self.for_engine(statement);
        Box::pin(async move {
            match &self.pools {
                Pools::Sqlite(files) => {
                    let _lock = files.write_lock().await;
                    let mut connection = files.writer(durability).acquire().await?;
                    pass_rows!(Sqlite, statement, &mut *connection, sink);
                    connection.release();
                }
                Pools::Postgres(pool) => pass_rows!(Postgres, statement, pool, sink),
            }
            Ok(())
        })
    }

    /// Runs statements in one transaction and passes on the rows of the last.
    pub(crate) fn execute_in_order<'a>(
        &'a self,
        durability: Durability,
        statements: Vec<Statement>,
        sink: &'a mut RowSink<'_>,
    ) -> Execution<'a> {
        let statements: Vec<Statement> = statements.into_iter().map(|it| self.for_engine(it)).collect();
        Box::pin(async move {
            match &self.pools {
                Pools::Sqlite(files) => {
                    let _lock = files.write_lock().await;
                    let mut connection = files.writer(durability).acquire().await?;
                    // Takes the write lock at once: upgrading a read transaction later can fail.
                    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
                    // After some errors, such as a full disk, SQLite has rolled back by itself, and the driver does not
                    // notice. So the connection is released only after a commit.
                    pass_rows_of_last!(Sqlite, statements, transaction, sink);
                    connection.release();
                    Ok(())
                }
                Pools::Postgres(pool) => {
                    let mut transaction = pool.begin().await?;
                    pass_rows_of_last!(Postgres, statements, transaction, sink);
                    Ok(())
                }
            }
        })
    }

    /// Runs statements in one transaction of PostgreSQL that notifies the other replicas on commit.
    pub(crate) fn execute_and_notify<'a>(
        &'a self,
        pool: &'a PgPool,
        payload: String,
        statements: Vec<Statement>,
        sink: &'a mut RowSink<'_>,
    ) -> Execution<'a> {
        let statements: Vec<Statement> = statements.into_iter().map(|it| self.for_engine(it)).collect();
        Box::pin(async move {
            let mut transaction = pool.begin().await?;
            sqlx::query(change::NOTIFY).bind(payload).execute(&mut *transaction).await?;
            pass_rows_of_last!(Postgres, statements, transaction, sink);
            Ok(())
        })
    }
}
