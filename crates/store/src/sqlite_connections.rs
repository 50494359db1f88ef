//! Open connections to a SQLite file, which are used in turn.
//!
//! The pool of the driver returns a connection in a task of its own, after a round trip to the thread of the connection.
//! A process that reads twice in a row then opens a second connection. Here a connection is back at once, and it is
//! closed unless its last statement has ended well: a cancelled or failed one may leave a transaction behind.

use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions as ConnectionOptions};
use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// The connections of one kind. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SqliteConnections(Arc<ConnectionsState>);

#[derive(Debug)]
struct ConnectionsState {
    options: ConnectionOptions,
    idle: Mutex<Vec<SqliteConnection>>,
    /// One permit for each connection that may be open.
    permits: Semaphore,
    max_open: u32,
    wait_timeout: Duration,
}

/// A connection in use. It is closed unless it is released.
#[derive(Debug)]
pub(crate) struct UsedConnection<'a> {
    connection: SqliteConnection,
    state: &'a ConnectionsState,
    _permit: SemaphorePermit<'a>,
}

impl SqliteConnections {
    /// Opens at most `max_open` connections, when they are needed. `wait_timeout` is the longest wait for one.
    pub(crate) fn new(
        options: ConnectionOptions,
        max_open: u32,
        wait_timeout: Duration,
    ) -> SqliteConnections {
        let (idle, permits) = (Mutex::default(), Semaphore::new(max_open as usize));
        SqliteConnections(Arc::new(ConnectionsState { options, idle, permits, max_open, wait_timeout }))
    }

    /// Returns an idle connection, or opens one.
    pub(crate) async fn acquire(&self) -> sqlx::Result<UsedConnection<'_>> {
        let state = &*self.0;
        let permit = match state.permits.try_acquire() {
            Ok(permit) => permit,
            Err(_) => {
                let permit = timeout(state.wait_timeout, state.permits.acquire()).await;
                permit.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?
            }
        };
        let idle = state.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => state.options.connect().await?,
        };
        Ok(UsedConnection { connection, state, _permit: permit })
    }

    /// Waits for the connections in use, and closes all.
    pub(crate) async fn close(&self) {
        let state = &*self.0;
        // Fails if it is closed already.
        let all = timeout(state.wait_timeout, state.permits.acquire_many(state.max_open)).await;
        state.permits.close();
        drop(all);
        let idle = std::mem::take(&mut *state.idle());
        for connection in idle {
            // What was committed is safe, and the file is closed in any case.
            let _ = connection.close().await;
        }
    }
}

impl ConnectionsState {
    fn idle(&self) -> MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UsedConnection<'_> {
    /// Makes the connection idle, after its statements have ended well.
    pub(crate) fn release(self) {
        let UsedConnection { connection, state, _permit } = self;
        if !state.permits.is_closed() {
            state.idle().push(connection);
        }
    }
}

impl Deref for UsedConnection<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for UsedConnection<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{Executor, Row};

    const WAIT: Duration = Duration::from_millis(50);

    fn connections(folder: &tempfile::TempDir, max_open: u32) -> SqliteConnections {
        let options = ConnectionOptions::new().filename(folder.path().join("db")).create_if_missing(true);
        SqliteConnections::new(options, max_open, WAIT)
    }

    async fn count(connections: &SqliteConnections) -> i64 {
        let mut used = connections.acquire().await.expect("a connection");
        let row = used.fetch_one("SELECT count(*) FROM t").await.expect("a row");
        used.release();
        row.get(0)
    }

    #[tokio::test]
    async fn uses_in_a_row_share_one_connection() {
        let folder = tempfile::tempdir().expect("a folder");
        let connections = connections(&folder, 4);
        let mut first = connections.acquire().await.expect("a connection");
        first.execute("CREATE TABLE t (x); CREATE TEMP TABLE mine (x)").await.expect("tables");
        first.release();
        for _ in 0..3 {
            let mut next = connections.acquire().await.expect("a connection");
            next.execute("SELECT * FROM mine").await.expect("the same connection");
            next.release();
        }
        assert_eq!(connections.0.idle().len(), 1);
    }

    #[tokio::test]
    async fn a_connection_that_is_not_released_is_closed_with_its_transaction() {
        let folder = tempfile::tempdir().expect("a folder");
        let connections = connections(&folder, 1);
        let mut used = connections.acquire().await.expect("a connection");
        used.execute("CREATE TABLE t (x)").await.expect("a table");
        used.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").await.expect("a row");
        drop(used);
        assert_eq!(connections.0.idle().len(), 0);
        assert_eq!(count(&connections).await, 0);
    }

    #[tokio::test]
    async fn waiting_for_a_connection_has_a_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let connections = connections(&folder, 1);
        let used = connections.acquire().await.expect("a connection");
        assert!(matches!(connections.acquire().await, Err(sqlx::Error::PoolTimedOut)));
        used.release();
        connections.acquire().await.expect("a connection").release();
    }

    #[tokio::test]
    async fn closing_waits_for_the_connections_in_use() {
        let folder = tempfile::tempdir().expect("a folder");
        let connections =
            SqliteConnections::new(connections(&folder, 2).0.options.clone(), 2, Duration::from_secs(30));
        let mut used = connections.acquire().await.expect("a connection");
        let using = async {
            used.execute("CREATE TABLE t (x)").await.expect("a table");
            tokio::task::yield_now().await;
            used.execute("INSERT INTO t VALUES (1)").await.expect("a row");
            used.release();
        };
        tokio::join!(connections.close(), using);
        assert!(matches!(connections.acquire().await, Err(sqlx::Error::PoolClosed)));
        assert_eq!(connections.0.idle().len(), 0);
        connections.close().await;
    }
}
