//! Opens a SQLite file that other processes may share.
//!
//! The write-ahead log lets readers and the writer run at the same time. Every commit is synced before it is
//! acknowledged (`synchronous = FULL`), so it survives a power cut. The journal is the exception: it is written for
//! every call, so its connection syncs only when the log is checkpointed (`synchronous = NORMAL`).

use crate::{
    StoreError,
    migrate::{self, MigrationError},
    new_file,
    result_files::ResultFiles,
    sqlite_connections::SqliteConnections,
};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use std::{fs, io, path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, sleep},
};

/// How long to wait for a lock or a free connection.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the journal waits for a lock. It is shorter, because the journal has a spool for calls that cannot be
/// inserted.
const JOURNAL_LOCK_TIMEOUT: Duration = Duration::from_secs(4);

/// Number of pages in the write-ahead log that triggers a checkpoint by the journal. Rarer, larger checkpoints cost less
/// in total.
const JOURNAL_CHECKPOINT_PAGES: &str = "4000";

/// Retry interval while another process sets up the database.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of concurrent readers.
const MAX_READERS: u32 = 4;

/// Names the failures that a committed write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Everything, because the commit is synced.
    PowerCut,
    /// The end of the process, even by a kill. The commit is in the hands of the operating system, but not synced.
    ProcessCrash,
}

/// All connections to one SQLite file.
#[derive(Clone, Debug)]
pub(crate) struct SqlitePools {
    synced: SqliteConnections,
    unsynced: SqliteConnections,
    /// Serializes the writers of this process. Unlike SQLite's lock, this mutex is fair and wakes the next writer
    /// at once.
    write_lock: Arc<Mutex<()>>,
    pub(crate) readers: SqliteConnections,
    /// Content of results.
    pub(crate) result_files: ResultFiles,
}

impl SqlitePools {
    pub(crate) async fn open(path: &Path) -> Result<SqlitePools, StoreError> {
        make_folder(path)
            .map_err(|error| StoreError::Open(format!("its folder cannot be created: {error}")))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .busy_timeout(LOCK_TIMEOUT)
            .synchronous(SqliteSynchronous::Full)
            // Journals of statements would be files otherwise.
            .pragma("temp_store", "memory")
            .foreign_keys(true);
        new_file::make(path).await;
        make_private(path);
        let connections = |options, count| SqliteConnections::new(options, count, LOCK_TIMEOUT);
        let synced = connections(options.clone().journal_mode(SqliteJournalMode::Wal), 1);
        set_up(&synced).await?;
        let journal = options
            .clone()
            .busy_timeout(JOURNAL_LOCK_TIMEOUT)
            .synchronous(SqliteSynchronous::Normal)
            .pragma("wal_autocheckpoint", JOURNAL_CHECKPOINT_PAGES);
        Ok(SqlitePools {
            synced,
            unsynced: connections(journal, 1),
            write_lock: Arc::default(),
            readers: connections(options, MAX_READERS),
            result_files: ResultFiles::beside(path),
        })
    }

    /// Returns the connection for writes of this durability.
    pub(crate) fn writer(&self, durability: Durability) -> &SqliteConnections {
        match durability {
            Durability::PowerCut => &self.synced,
            Durability::ProcessCrash => &self.unsynced,
        }
    }

    /// Waits for the right to write.
    pub(crate) async fn write_lock(&self) -> MutexGuard<'_, ()> {
        self.write_lock.lock().await
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.unsynced.close().await;
        self.synced.close().await;
    }
}

/// Enables the write-ahead log and migrates the tables. Retries here, because SQLite does not wait while another
/// process does the same.
async fn set_up(writer: &SqliteConnections) -> Result<(), StoreError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match catch_up(writer).await {
            Err(MigrationError::Engine(error)) if is_busy(&error) && Instant::now() < deadline => {
                sleep(RETRY_INTERVAL).await;
            }
            done => return Ok(done?),
        }
    }
}

async fn catch_up(writer: &SqliteConnections) -> Result<(), MigrationError> {
    let mut connection = writer.acquire().await?;
    migrate::sqlite(&mut connection).await?;
    connection.release();
    Ok(())
}

/// Matches SQLITE_BUSY and SQLITE_LOCKED, with any extended code.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|it| it.code()?.parse::<i32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Creates the file if it is missing and makes it and its side files private. SQLite would use the umask for them;
/// files it creates later inherit the mode of the database. Ignores errors: SQLite reports them when it opens the
/// file.
fn make_private(path: &Path) {
    let _ = new_file::create_private(path);
    #[cfg(unix)]
    for suffix in ["", "-wal", "-shm", "-journal"] {
        use std::os::unix::fs::PermissionsExt;
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        let is_shared = |it: fs::Metadata| it.is_file() && it.permissions().mode() & 0o077 != 0;
        if fs::metadata(&file).is_ok_and(is_shared) {
            let _ = fs::set_permissions(&file, fs::Permissions::from_mode(0o600));
        }
    }
}

fn make_folder(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent().filter(|it| !it.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.recursive(true).create(folder)
}
