//! The open database: one API over the SQLite and PostgreSQL pools.
//!
//! SQLite allows one writer at a time, so it gets one writing connection and a few readers. Writers of this process
//! queue for a mutex, which is fair and cheap; SQLite's own lock, which is neither, is left for other processes.

use crate::{
    Change, Location, StoreError, change, migrate,
    rows::{EngineRow, PlainRow},
    sqlite::{Durability, SqlitePools},
    statement::Statement,
};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{pin::Pin, str::FromStr, sync::Arc, time::Duration};
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

/// A pending result of the database. Boxed, so it is compiled in this crate and not again in each crate that awaits it.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The connection pools of the engine in use.
#[derive(Clone, Debug)]
pub(crate) enum Pools {
    Sqlite(SqlitePools),
    Postgres(PgPool),
}

impl Store {
    /// Opens the database and migrates it. Creates a SQLite file if it does not exist.
    pub fn open(location: &Location) -> StoreFuture<'_, Result<Store, StoreError>> {
        Box::pin(Store::connect(location))
    }

    async fn connect(location: &Location) -> Result<Store, StoreError> {
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
    pub fn close(&self) -> StoreFuture<'_, ()> {
        match &self.pools {
            Pools::Sqlite(files) => Box::pin(files.close()),
            Pools::Postgres(pool) => Box::pin(pool.close()),
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
    pub(crate) fn for_engine(&self, statement: Statement) -> Statement {
        match &self.pools {
            Pools::Sqlite(_) => statement,
            Pools::Postgres(_) => Statement { sql: Statement::numbered(&statement.sql), ..statement },
        }
    }

    /// Runs a query and returns all rows.
    pub(crate) async fn read<T: PlainRow>(&self, statement: Statement) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.fetch(statement, &mut |row| collect(row, &mut all)).await?;
        Ok(all)
    }

    /// Runs a query and passes each row to `more` until it returns false.
    pub(crate) async fn read_while<T: PlainRow>(
        &self,
        statement: Statement,
        mut more: impl FnMut(T) -> bool + Send,
    ) -> Result<(), StoreError> {
        self.fetch(statement, &mut |row| Ok(more(row.decode()?))).await
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
        let mut rows = Vec::new();
        let mut collect = |row: EngineRow<'_>| collect(row, &mut rows);
        match <[Statement; 1]>::try_from(statements) {
            Ok([only]) => self.execute_alone(durability, only, &mut collect).await?,
            Err(statements) => self.execute_in_order(durability, statements, &mut collect).await?,
        }
        Ok(rows)
    }

    /// Like [`Store::write`], but only the last statement may return rows. SQLite's driver runs them together, because each
    /// statement alone wakes its thread and ours.
    pub(crate) async fn write_together<T: PlainRow>(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Vec<T>, StoreError> {
        let statements = match &self.pools {
            Pools::Sqlite(_) => vec![Statement::join(statements)],
            Pools::Postgres(_) => statements,
        };
        let mut rows = Vec::new();
        self.execute_in_order(Durability::PowerCut, statements, &mut |row| collect(row, &mut rows)).await?;
        Ok(rows)
    }

    /// Runs statements in one transaction, notifies the other replicas on commit, and returns the rows of the last.
    pub(crate) async fn write_and_notify<T: PlainRow>(
        &self,
        change: &Change,
        statements: Vec<Statement>,
    ) -> Result<Vec<T>, StoreError> {
        let Pools::Postgres(pool) = &self.pools else { return self.write(statements).await };
        let mut rows = Vec::new();
        let payload = change.payload(&self.replica);
        self.execute_and_notify(pool, payload, statements, &mut |row| collect(row, &mut rows)).await?;
        Ok(rows)
    }

    /// Runs one statement without a transaction and returns its rows.
    pub(crate) async fn write_one<T: PlainRow>(&self, statement: Statement) -> Result<Vec<T>, StoreError> {
        let mut rows = Vec::new();
        self.execute_alone(Durability::PowerCut, statement, &mut |row| collect(row, &mut rows)).await?;
        Ok(rows)
    }
}

/// Adds a row to `rows`. Returns true: more rows are welcome.
fn collect<T: PlainRow>(row: EngineRow<'_>, rows: &mut Vec<T>) -> sqlx::Result<bool> {
    rows.push(row.decode()?);
    Ok(true)
}
