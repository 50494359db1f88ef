//! Creates a new SQLite database beside its final path and moves it there in one step.
//!
//! SQLite syncs a new file about ten times while it creates the tables, which delays the first start. No other
//! process sees the file before it is linked into place, so one sync at the end is enough: the database exists with
//! all its tables or not at all.

use crate::migrate;
use sqlx::{
    ConnectOptions, Connection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqliteSynchronous},
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::task;

/// Offset and value of the read and write version in the SQLite file header; 2 selects the write-ahead log.
const WAL_FORMAT: (u64, [u8; 2]) = (18, [2, 2]);

/// Counter that makes temporary file names unique within the process.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Creates the database if the file does not exist. On any failure it does nothing: SQLite then creates the file
/// itself, or reports what is wrong with the path.
pub(crate) async fn make(path: &Path) {
    if path.exists() {
        return;
    }
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!("-new.{}-{number}", process::id()));
    let (temporary, path) = (PathBuf::from(temporary), path.to_owned());
    let is_filled = create_private(&temporary).is_ok() && create_tables(&temporary).await.is_ok();
    let linking = task::spawn_blocking(move || {
        let linked = if is_filled { link_into_place(&temporary, &path) } else { Ok(()) };
        let _ = fs::remove_file(&temporary);
        linked
    });
    let _ = linking.await;
}

/// Creates an empty file that only its owner can read, unless the file exists. SQLite treats an empty file as an
/// empty database.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Creates the tables without syncs and without a rollback journal. If this fails, the file is deleted.
async fn create_tables(temporary: &Path) -> Result<(), migrate::MigrationError> {
    let options = SqliteConnectOptions::new()
        .filename(temporary)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Off)
        .locking_mode(SqliteLockingMode::Exclusive)
        .synchronous(SqliteSynchronous::Off);
    let mut connection = options.connect().await?;
    migrate::sqlite(&mut connection).await?;
    Ok(connection.close().await?)
}

/// Syncs the file and links it to its final path. Fails if another process has created the file meanwhile.
fn link_into_place(temporary: &Path, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(temporary)?;
    let (offset, format) = WAL_FORMAT;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(&format)?;
    file.sync_all()?;
    fs::hard_link(temporary, path)?;
    sync_folder(path)
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
