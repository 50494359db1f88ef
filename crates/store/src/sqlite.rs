//! A database in a file, shared with other processes.
//!
//! Write-ahead log, so that readers and the writer do not wait for each other; every commit is synced to the disk before
//! it is acknowledged (`synchronous = FULL`), so that what was acknowledged survives a power cut, not only a kill. Only the
//! journal of calls is not synced: it is written for every call, and of what the machine itself can lose in a power cut
//! the last records of calls are the least.

use crate::{
    StoreError, fresh,
    migrate::{self, Trouble},
    recorder::Recorder,
};
use sqlx::{
    Sqlite, SqlitePool, Transaction,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use std::{fs, io, path::Path, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, sleep},
};

/// How long other processes are waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// How soon a database that is just being set up by another process is tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// How many may read at the same time.
const READERS: u32 = 4;

/// The connections with one file.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) writer: SqlitePool,
    /// Writes the journal.
    pub(crate) recorder: Recorder,
    /// Whose turn it is to write: waiting for it here is fair, and wakes at once.
    pub(crate) turn: Arc<Mutex<()>>,
    pub(crate) readers: SqlitePool,
}

impl Files {
    pub(crate) async fn open(path: &Path) -> Result<Files, StoreError> {
        make_folder(path).map_err(|error| StoreError::Open(format!("its folder cannot be made: {error}")))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .busy_timeout(PATIENCE)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true);
        fresh::make(path).await;
        make_private(path);
        let pool = |connections| {
            let pool = SqlitePoolOptions::new().max_connections(connections).acquire_timeout(PATIENCE);
            // A file does not go away as a server does.
            pool.test_before_acquire(false).idle_timeout(None).max_lifetime(None)
        };
        let writer = pool(1).connect_lazy_with(options.clone().journal_mode(SqliteJournalMode::Wal));
        set_up(&writer).await?;
        Ok(Files {
            writer,
            recorder: Recorder::new(path, PATIENCE),
            turn: Arc::default(),
            readers: pool(READERS).connect_lazy_with(options),
        })
    }

    /// The right to write.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// A transaction that has the right to write from its beginning: one that asked for it later could be refused.
    pub(crate) async fn begin(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.writer.begin_with("BEGIN IMMEDIATE").await
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.recorder.close().await;
        self.writer.close().await;
    }
}

/// Switches the log on and brings the tables up to date. While another process does the same, the engine refuses
/// without waiting, so the waiting is done here.
async fn set_up(writer: &SqlitePool) -> Result<(), StoreError> {
    let patient_until = Instant::now() + PATIENCE;
    loop {
        match catch_up(writer).await {
            Err(Trouble::Engine(error)) if is_busy(&error) && Instant::now() < patient_until => {
                sleep(AGAIN).await;
            }
            done => return Ok(done?),
        }
    }
}

async fn catch_up(writer: &SqlitePool) -> Result<(), Trouble> {
    migrate::sqlite(&mut *writer.acquire().await?).await
}

/// SQLITE_BUSY and SQLITE_LOCKED, with whatever is said beside them.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|it| it.code()?.parse::<i32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Makes the file if it is missing, and sees to it that only its owner can read it and what the engine keeps beside it. The
/// engine would leave that to the umask; what it makes later gets the rights of the file. Whatever is wrong with the place
/// is left to the engine to say.
fn make_private(path: &Path) {
    let _ = fresh::create_private(path);
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
