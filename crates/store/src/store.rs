//! The open database: one API over the SQLite and PostgreSQL pools.
//!
//! SQLite allows one writer at a time, so it gets one writing connection and a few readers. Writers of this process
//! queue for a mutex, which is fair and cheap; SQLite's own lock, which is neither, is left for other processes.

use crate::{
    Change, Location, StoreError, change, migrate,
    rows::PlainRow,
    sqlite::{Durability, SqlitePools},
    statement::{Statement, Value},
};
use futures_util::TryStreamExt;
use sqlx::{
    Arguments, AssertSqlSafe, Connection, PgPool,
    postgres::{PgArguments, PgConnectOptions, PgPoolOptions},
    sqlite::SqliteArguments,
};
use std::{str::FromStr, sync::Arc, time::Duration};
use tokio::time::timeout;

/// Maximum number of PostgreSQL connections per process.
const MAX_CONNECTIONS: u32 = 8;

/// Timeout for connecting and for a free connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// An open database; cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) pools: Pools,
    /// Id of this process among the replicas that share the database.
    pub(crate) replica: Arc<str>,
    /// Owner of the runs that this process begins. Other than the replica it stays the same after a restart.
    pub(crate) lease_owner: Arc<str>,
}

/// The connection pools of the engine in use.
#[derive(Clone, Debug)]
pub(crate) enum Pools {
    Sqlite(SqlitePools),
    Postgres(PgPool),
}

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
        sqlx::query_as_with(AssertSqlSafe(sql), arguments)
    }};
}

/// Runs the statements in order, commits, and returns the rows of the last one.
macro_rules! in_order {
    ($arguments:ty, $statements:expr, $transaction:expr) => {{
        let mut rows = Vec::new();
        for statement in $statements {
            rows = query!($arguments, statement).fetch_all(&mut *$transaction).await?;
        }
        $transaction.commit().await?;
        Ok(rows)
    }};
}

impl Store {
    /// Opens the database and migrates it. Creates a SQLite file if it does not exist.
    pub async fn open(location: &Location) -> Result<Store, StoreError> {
        match location {
            Location::Sqlite(path) => {
                let files = SqlitePools::open(path).await?;
                Ok(Store::of(Pools::Sqlite(files)))
            }
            Location::Postgres(address) => {
                let options = PgConnectOptions::from_str(address).map_err(|it| StoreError::opening(&it))?;
                // A single connection reports why it failed; a pool would only time out.
                let reached = timeout(CONNECT_TIMEOUT, migrate::postgres(&options)).await;
                reached.map_err(|_| StoreError::Open("the server does not answer".to_owned()))??;
                let pool =
                    PgPoolOptions::new().max_connections(MAX_CONNECTIONS).acquire_timeout(CONNECT_TIMEOUT);
                let pool = pool.connect_lazy_with(options);
                Ok(Store::of(Pools::Postgres(pool)))
            }
        }
    }

    fn of(pools: Pools) -> Store {
        let replica: Arc<str> = change::new_replica_id().into();
        Store { pools, lease_owner: replica.clone(), replica }
    }

    /// Names the owner of the runs that this process begins. No other running process may have this name.
    #[must_use]
    pub fn with_lease_owner(self, owner: &str) -> Store {
        Store { lease_owner: owner.into(), ..self }
    }

    /// Closes all connections. Acknowledged writes are durable without it.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite(files) => files.close().await,
            Pools::Postgres(pool) => pool.close().await,
        }
    }

    /// Returns the name of the engine.
    pub fn engine(&self) -> &'static str {
        match &self.pools {
            Pools::Sqlite(_) => "SQLite",
            Pools::Postgres(_) => "PostgreSQL",
        }
    }

    /// SQL function that returns the position of a substring, or 0.
    pub(crate) fn position(&self) -> &'static str {
        match &self.pools {
            Pools::Sqlite(_) => "instr(",
            Pools::Postgres(_) => "strpos(",
        }
    }

    /// SQL expression for the database clock, in microseconds since 1970.
    pub(crate) fn now(&self) -> &'static str {
        match &self.pools {
            Pools::Sqlite(_) => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            Pools::Postgres(_) => "(extract(epoch from clock_timestamp()) * 1000000)::bigint",
        }
    }

    /// Converts a statement to the placeholder syntax of the engine.
    fn for_engine(&self, statement: Statement) -> Statement {
        match &self.pools {
            Pools::Sqlite(_) => statement,
            Pools::Postgres(_) => Statement { sql: Statement::numbered(&statement.sql), ..statement },
        }
    }

    /// Runs a query and returns all rows.
    pub(crate) async fn read<T: PlainRow>(&self, statement: Statement) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.read_while(statement, |row| {
            all.push(row);
            true
        })
        .await?;
        Ok(all)
    }

    /// Runs a query and passes each row to `more` until it returns false.
    pub(crate) async fn read_while<T: PlainRow>(
        &self,
        statement: Statement,
        mut more: impl FnMut(T) -> bool,
    ) -> Result<(), StoreError> {
        let statement = self.for_engine(statement);
        macro_rules! each {
            ($arguments:ty, $pool:expr) => {{
                let mut rows = query!($arguments, statement).fetch($pool);
                while let Some(row) = rows.try_next().await? {
                    if !more(row) {
                        break;
                    }
                }
                Ok(())
            }};
        }
        match &self.pools {
            Pools::Sqlite(files) => each!(SqliteArguments, &files.readers),
            Pools::Postgres(pool) => each!(PgArguments, pool),
        }
    }

    /// Runs statements in one transaction and returns the rows of the last. A single statement is atomic by itself
    /// and needs one round trip instead of three.
    pub(crate) async fn write<T: PlainRow>(&self, statements: Vec<Statement>) -> Result<Vec<T>, StoreError> {
        self.write_as(Durability::PowerCut, statements).await
    }

    /// Like [`Store::write`], with a choice of durability on SQLite.
    pub(crate) async fn write_as<T: PlainRow>(
        &self,
        durability: Durability,
        statements: Vec<Statement>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statements: Vec<Statement> = statements.into_iter().map(|it| self.for_engine(it)).collect();
        if statements.len() == 1
            && let Some(only) = statements.pop()
        {
            return self.write_alone(durability, only).await;
        }
        self.write_in_transaction(durability, statements).await
    }

    /// Like [`Store::write`], but only the last statement may return rows. SQLite's driver runs them together, because each
    /// statement alone wakes its thread and ours.
    pub(crate) async fn write_together<T: PlainRow>(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Vec<T>, StoreError> {
        let statements: Vec<Statement> = statements.into_iter().map(|it| self.for_engine(it)).collect();
        let statements = match &self.pools {
            Pools::Sqlite(_) => vec![Statement::join(statements)],
            Pools::Postgres(_) => statements,
        };
        self.write_in_transaction(Durability::PowerCut, statements).await
    }

    async fn write_in_transaction<T: PlainRow>(
        &self,
        durability: Durability,
        statements: Vec<Statement>,
    ) -> Result<Vec<T>, StoreError> {
        match &self.pools {
            Pools::Sqlite(files) => {
                let _lock = files.write_lock().await;
                let mut connection = files.writer(durability).acquire().await?;
                let written: Result<Vec<T>, StoreError> = async {
                    // Takes the write lock at once: upgrading a read transaction later can fail.
                    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
                    in_order!(SqliteArguments, statements, transaction)
                }
                .await;
                if written.is_err() {
                    // After some errors, such as a full disk, SQLite has rolled back by itself. The driver does not
                    // notice, and would refuse every further transaction of this connection.
                    connection.close_on_drop();
                }
                written
            }
            Pools::Postgres(pool) => {
                let mut transaction = pool.begin().await?;
                in_order!(PgArguments, statements, transaction)
            }
        }
    }

    /// Runs statements in one transaction, notifies the other replicas on commit, and returns the rows of the last.
    pub(crate) async fn write_and_notify<T: PlainRow>(
        &self,
        change: &Change,
        statements: Vec<Statement>,
    ) -> Result<Vec<T>, StoreError> {
        let Pools::Postgres(pool) = &self.pools else { return self.write(statements).await };
        let statements = statements.into_iter().map(|it| self.for_engine(it));
        let mut transaction = pool.begin().await?;
        let payload = change.payload(&self.replica);
        sqlx::query(change::NOTIFY).bind(payload).execute(&mut *transaction).await?;
        in_order!(PgArguments, statements, transaction)
    }

    /// Runs one statement without a transaction and returns its rows.
    pub(crate) async fn write_one<T: PlainRow>(&self, statement: Statement) -> Result<Vec<T>, StoreError> {
        self.write_alone(Durability::PowerCut, self.for_engine(statement)).await
    }

    async fn write_alone<T: PlainRow>(
        &self,
        durability: Durability,
        statement: Statement,
    ) -> Result<Vec<T>, StoreError> {
        Ok(match &self.pools {
            Pools::Sqlite(files) => {
                let _lock = files.write_lock().await;
                query!(SqliteArguments, statement).fetch_all(files.writer(durability)).await?
            }
            Pools::Postgres(pool) => query!(PgArguments, statement).fetch_all(pool).await?,
        })
    }
}
