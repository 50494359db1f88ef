//! The open database: two pools behind one set of functions.
//!
//! SQLite has one connection that writes and a few that read, because it lets one writer in at a time: waiting in our
//! queue is fair and cheap, waiting for its lock is neither. Other processes are waited for all the same.

use crate::{
    Change, Location, StoreError, changes, migrate,
    rows::PlainRow,
    sqlite::Files,
    statement::{Statement, Value},
};
use futures_util::TryStreamExt;
use sqlx::{
    AssertSqlSafe, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{str::FromStr, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How many connections one process may have with PostgreSQL.
const CONNECTIONS: u32 = 8;

/// How long a connection may take to become free, or to be made.
const PATIENCE: Duration = Duration::from_secs(15);

/// An open database; cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) pools: Pools,
    /// What this process is known by among those that share the database.
    pub(crate) replica: Arc<str>,
}

/// The engines.
#[derive(Clone, Debug)]
pub(crate) enum Pools {
    Sqlite(Files),
    Postgres(PgPool),
}

macro_rules! bound {
    ($query:expr, $values:expr) => {
        $values.into_iter().fold($query, |query, value| match value {
            Value::Int(it) => query.bind(it),
            Value::Real(it) => query.bind(it),
            Value::Text(it) => query.bind(it),
            Value::Bool(it) => query.bind(it),
            Value::Bytes(it) => query.bind(it),
        })
    };
}

/// Runs all statements but the last for their effect, and the last for its rows.
macro_rules! in_order {
    ($statements:expr, $transaction:expr) => {{
        let mut rows = Vec::new();
        for Statement { sql, values } in $statements {
            rows = bound!(sqlx::query_as(AssertSqlSafe(sql)), values).fetch_all(&mut *$transaction).await?;
        }
        $transaction.commit().await?;
        Ok(rows)
    }};
}

impl Store {
    /// Opens the database, makes it if it is a file that does not exist, and brings its tables up to date.
    pub async fn open(location: &Location) -> Result<Store, StoreError> {
        match location {
            Location::Sqlite(path) => {
                let files = Files::open(path).await?;
                Ok(Store::of(Pools::Sqlite(files)))
            }
            Location::Postgres(address) => {
                let options = PgConnectOptions::from_str(address).map_err(|it| StoreError::opening(&it))?;
                // One connection by itself says why it cannot be made; a pool would only wait.
                let reached = timeout(PATIENCE, migrate::postgres(&options)).await;
                reached.map_err(|_| StoreError::Open("the server does not answer".to_owned()))??;
                let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(PATIENCE);
                let pool = pool.connect_lazy_with(options);
                Ok(Store::of(Pools::Postgres(pool)))
            }
        }
    }

    fn of(pools: Pools) -> Store {
        Store { pools, replica: changes::name().into() }
    }

    /// Ends all connections. What was acknowledged is safe without it.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite(files) => files.close().await,
            Pools::Postgres(pool) => pool.close().await,
        }
    }

    /// The name of the engine.
    pub fn engine(&self) -> &'static str {
        match &self.pools {
            Pools::Sqlite(_) => "SQLite",
            Pools::Postgres(_) => "PostgreSQL",
        }
    }

    /// The function that finds one string in another and says where, or 0.
    pub(crate) fn position(&self) -> &'static str {
        match &self.pools {
            Pools::Sqlite(_) => "instr(",
            Pools::Postgres(_) => "strpos(",
        }
    }

    /// The time by the database's own clock, in microseconds since 1970.
    pub(crate) fn now(&self) -> &'static str {
        match &self.pools {
            Pools::Sqlite(_) => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            Pools::Postgres(_) => "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
        }
    }

    /// The same statement, as the engine reads it.
    fn written_for(&self, statement: Statement) -> Statement {
        match &self.pools {
            Pools::Sqlite(_) => statement,
            Pools::Postgres(_) => Statement { sql: Statement::numbered(&statement.sql), ..statement },
        }
    }

    /// All rows of a query.
    pub(crate) async fn read<T: PlainRow>(&self, statement: Statement) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.read_while(statement, |row| {
            all.push(row);
            true
        })
        .await?;
        Ok(all)
    }

    /// The rows of a query, one by one, until `more` says that it has enough.
    pub(crate) async fn read_while<T: PlainRow>(
        &self,
        statement: Statement,
        mut more: impl FnMut(T) -> bool,
    ) -> Result<(), StoreError> {
        let Statement { sql, values } = self.written_for(statement);
        macro_rules! each {
            ($pool:expr) => {{
                let mut rows = bound!(sqlx::query_as(AssertSqlSafe(sql)), values).fetch($pool);
                while let Some(row) = rows.try_next().await? {
                    if !more(row) {
                        break;
                    }
                }
                Ok(())
            }};
        }
        match &self.pools {
            Pools::Sqlite(files) => each!(&files.readers),
            Pools::Postgres(pool) => each!(pool),
        }
    }

    /// Runs statements that change something, all or none, and gives the rows of the last. One statement is all or none by
    /// itself, and costs one question instead of three.
    pub(crate) async fn write<T: PlainRow>(&self, statements: Vec<Statement>) -> Result<Vec<T>, StoreError> {
        let mut statements: Vec<Statement> = statements.into_iter().map(|it| self.written_for(it)).collect();
        if statements.len() == 1
            && let Some(only) = statements.pop()
        {
            return self.write_alone(only).await;
        }
        match &self.pools {
            Pools::Sqlite(files) => {
                let _turn = files.turn().await;
                let mut transaction = files.begin().await?;
                in_order!(statements, transaction)
            }
            Pools::Postgres(pool) => {
                let mut transaction = pool.begin().await?;
                in_order!(statements, transaction)
            }
        }
    }

    /// Runs statements that change something, all or none, and tells those who share the database at the moment when it is
    /// done. Gives the rows of the last.
    pub(crate) async fn write_and_tell<T: PlainRow>(
        &self,
        change: &Change,
        statements: Vec<Statement>,
    ) -> Result<Vec<T>, StoreError> {
        let Pools::Postgres(pool) = &self.pools else { return self.write(statements).await };
        let statements = statements.into_iter().map(|it| self.written_for(it));
        let mut transaction = pool.begin().await?;
        let payload = change.payload(&self.replica);
        sqlx::query(changes::TELL).bind(payload).execute(&mut *transaction).await?;
        in_order!(statements, transaction)
    }

    /// Runs one statement that changes something, and gives its rows. It needs no transaction around it.
    pub(crate) async fn write_one<T: PlainRow>(&self, statement: Statement) -> Result<Vec<T>, StoreError> {
        self.write_alone(self.written_for(statement)).await
    }

    async fn write_alone<T: PlainRow>(
        &self,
        Statement { sql, values }: Statement,
    ) -> Result<Vec<T>, StoreError> {
        let sql = AssertSqlSafe(sql);
        Ok(match &self.pools {
            Pools::Sqlite(files) => {
                let _turn = files.turn().await;
                bound!(sqlx::query_as(sql), values).fetch_all(&files.writer).await?
            }
            Pools::Postgres(pool) => bound!(sqlx::query_as(sql), values).fetch_all(pool).await?,
        })
    }
}
