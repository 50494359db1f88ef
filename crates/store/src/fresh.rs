//! A database that nobody has used yet: made whole beside its place, and put there in one step.
//!
//! The engine syncs a new file about ten times while its tables are made, and a first start would wait for each of them.
//! As long as nobody can see the file, one sync in the end is as good: it is found with all its tables, or not at all.

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

/// Where the file format says how the file is written and how it is read, and what stands there for the write-ahead log.
const FORMAT: (u64, [u8; 2]) = (18, [2, 2]);

/// Makes the names that one process uses differ.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Makes the database if there is none. Whatever stands in the way of this quick way is left to the engine, which makes
/// the file where it belongs, or says what is wrong with the place.
pub(crate) async fn make(path: &Path) {
    if path.exists() {
        return;
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!("-new.{}-{number}", process::id()));
    let (aside, path) = (PathBuf::from(aside), path.to_owned());
    let filled = create_private(&aside).is_ok() && fill(&aside).await.is_ok();
    let placing = task::spawn_blocking(move || {
        let placed = if filled { place(&aside, &path) } else { Ok(()) };
        let _ = fs::remove_file(&aside);
        placed
    });
    let _ = placing.await;
}

/// Makes an empty file that only its owner can read, unless there is a file already. An empty file is an empty database.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Makes the tables. Nothing is synced, and there is no way back: what fails here is thrown away.
async fn fill(aside: &Path) -> Result<(), migrate::Trouble> {
    let options = SqliteConnectOptions::new()
        .filename(aside)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Off)
        .locking_mode(SqliteLockingMode::Exclusive)
        .synchronous(SqliteSynchronous::Off);
    let mut connection = options.connect().await?;
    migrate::sqlite(&mut connection).await?;
    Ok(connection.close().await?)
}

/// Puts the file where it belongs, unless somebody else was faster.
fn place(aside: &Path, path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(aside)?;
    let (offset, format) = FORMAT;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(&format)?;
    file.sync_all()?;
    fs::hard_link(aside, path)?;
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
