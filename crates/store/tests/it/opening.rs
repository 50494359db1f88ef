//! Tests opening a database: new, existing, concurrently, and with a newer schema version.

use crate::engines::Database;
use tempfile::TempDir;
use tokio::task::JoinSet;
use wharf_store::{Location, NewTodo, Store, StoreError};

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_file_is_opened_concurrently() {
    let folder = TempDir::new().expect("a folder");
    check_concurrent_opening(Location::Sqlite(folder.path().join("wharf.db"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_opened_concurrently() {
    let database = Database::make().await;
    check_concurrent_opening(database.location.clone()).await;
}

/// Concurrent openers create the tables once, and every one of them can use the database.
async fn check_concurrent_opening(location: Location) {
    let mut openers = JoinSet::new();
    for number in 0..12 {
        let location = location.clone();
        openers.spawn(async move {
            let store = Store::open(&location).await.expect("the database opens");
            let new = NewTodo { title: format!("todo {number}"), ..NewTodo::default() };
            let id = store.create_todo(&new).await.expect("a todo").id;
            store.close().await;
            id
        });
    }
    let mut ids = openers.join_all().await;
    ids.sort_unstable();
    assert_eq!(ids, (1..=12).collect::<Vec<i64>>());
}

/// No temporary file remains, and the write-ahead log is already on.
#[tokio::test]
async fn new_file_uses_wal_and_leaves_no_temporary_file() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("wharf.db");
    Store::open(&Location::Sqlite(path.clone())).await.expect("the database opens").close().await;
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").flatten().collect();
    assert_eq!(names.iter().map(|it| it.file_name()).collect::<Vec<_>>(), ["wharf.db"]);
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = sqlx::ConnectOptions::connect(&options).await.expect("a connection");
    let mode = sqlx::query_scalar::<_, String>("PRAGMA journal_mode").fetch_one(&mut connection).await;
    assert_eq!(mode.expect("a mode"), "wal");
    let state = sqlx::query_scalar::<_, String>("PRAGMA integrity_check").fetch_one(&mut connection).await;
    assert_eq!(state.expect("a state"), "ok");
}

/// An existing empty file is migrated in place.
#[tokio::test]
async fn empty_file_is_migrated() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("wharf.db");
    std::fs::write(&path, "").expect("a file");
    let store = Store::open(&Location::Sqlite(path)).await.expect("the database opens");
    let new = NewTodo { title: "bread".to_owned(), ..NewTodo::default() };
    assert_eq!(store.create_todo(&new).await.expect("a todo").id, 1);
}

#[tokio::test]
async fn newer_database_is_rejected() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("wharf.db");
    let location = Location::Sqlite(path.clone());
    Store::open(&location).await.expect("the database opens").close().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = sqlx::ConnectOptions::connect(&options).await.expect("a connection");
    let sql = "INSERT INTO wharf_schema (version) VALUES (99)";
    sqlx::query(sql).execute(&mut connection).await.expect("it can be written");
    sqlx::Connection::close(connection).await.expect("it closes");
    let error = Store::open(&location).await.expect_err("it is too new");
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    let said = error.to_string();
    assert!(said.starts_with("the database is newer than this program"), "{said}");
}

/// The migrations up to schema version 8.
const VERSION_8: [&str; 8] = [
    include_str!("../../migrations/0001_todos.sql"),
    include_str!("../../migrations/0002_sources.sql"),
    include_str!("../../migrations/0003_calls.sql"),
    include_str!("../../migrations/0004_promises.sql"),
    include_str!("../../migrations/0005_principals.sql"),
    include_str!("../../migrations/0011_fewer_indexes.sql"),
    include_str!("../../migrations/0012_breakers.sql"),
    include_str!("../../migrations/0013_sessions.sql"),
];

/// The column `via` was called `door` in schema version 8.
#[tokio::test]
async fn calls_keep_their_interface_when_the_column_is_renamed() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("wharf.db");
    let database = Database::make().await;
    let Location::Postgres(address) = &database.location else { panic!("a server") };
    let file = Location::Sqlite(path.clone());
    let call = "INSERT INTO calls (request_id, source, tool_name, parameters, execution_start, \
        execution_duration_ms, status, door) VALUES ('old', 'todo', 'list_todos', '{}', 1, 1.5, 'success', 'mcp')";
    let versions = "CREATE TABLE wharf_schema (version BIGINT PRIMARY KEY); \
        INSERT INTO wharf_schema (version) VALUES (1), (2), (3), (4), (5), (6), (7), (8);";
    let version_8 = [&VERSION_8.join("\n"), versions, call].join("\n");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = sqlx::ConnectOptions::connect(&options).await.expect("a connection");
    sqlx::raw_sql(sqlx::AssertSqlSafe(version_8.clone()))
        .execute(&mut connection)
        .await
        .expect("it can be written");
    sqlx::Connection::close(connection).await.expect("it closes");
    let mut connection =
        <sqlx::PgConnection as sqlx::Connection>::connect(address).await.expect("a connection");
    sqlx::raw_sql(sqlx::AssertSqlSafe(version_8)).execute(&mut connection).await.expect("it can be written");
    for location in [&file, &database.location] {
        let store = Store::open(location).await.expect("the database opens");
        let call = store.call("old").await.expect("it is read").expect("it is there");
        assert_eq!(call.via.as_deref(), Some("mcp"), "{}", store.engine());
        store.close().await;
    }
}

#[tokio::test]
async fn open_error_names_the_cause_without_the_password() {
    let folder = TempDir::new().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "this is a text, and quite a long one at that; no database begins like it")
        .expect("a file");
    for (address, expected) in [
        (format!("sqlite:{}", folder.path().display()), "the database cannot be opened: "),
        (format!("sqlite:{}", text.display()), "file is not a database"),
        (format!("sqlite:{}/below", text.display()), "its folder cannot be created"),
        ("postgres://me:hunter2@127.0.0.1:1/x".to_owned(), "Connection refused"),
    ] {
        let location = Location::parse(&address).expect("an address");
        let error = Store::open(&location).await.expect_err(&address).to_string();
        assert!(error.contains(expected) && !error.contains("hunter2"), "{address}: {error}");
    }
}
