//! Runs a check on both engines. Concurrent tests share one PostgreSQL server, each with its own database; the
//! server stops after the last of them.

use crate::postgres::Postgres;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicUsize, Ordering},
};
use tempfile::TempDir;
use wharf_store::{Location, Store};

static SERVER: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
static DATABASES: AtomicUsize = AtomicUsize::new(0);

/// An empty database and its server.
pub(crate) struct Database {
    pub(crate) location: Location,
    _server: Arc<Postgres>,
}

/// Runs a check on an empty SQLite file, then on an empty PostgreSQL database.
pub(crate) async fn on_both(check: impl AsyncFn(&Store)) {
    let folder = TempDir::new().expect("a folder");
    let file = Location::Sqlite(folder.path().join("state/wharf.db"));
    let database = Database::make().await;
    for location in [&file, &database.location] {
        let store = Store::open(location).await.expect("the database opens");
        check(&store).await;
        store.close().await;
    }
}

impl Database {
    pub(crate) async fn make() -> Database {
        let server = server();
        let mut connection = PgConnection::connect(&server.address()).await.expect("a connection");
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let made = connection.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await;
        made.expect("a database");
        connection.close().await.expect("it closes");
        let address = server.address();
        let (server_only, _) = address.rsplit_once('/').expect("an address");
        let location = Location::parse(&format!("{server_only}/{name}")).expect("an address");
        Database { location, _server: server }
    }
}

fn server() -> Arc<Postgres> {
    let mut shared = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let server = Arc::new(Postgres::start());
        *shared = Arc::downgrade(&server);
        server
    })
}
