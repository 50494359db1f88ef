//! The spool: files with calls that are answered but not in the database yet.
//!
//! An append is cheap and survives a kill of the process: the next process adopts the files. The owner holds a lock on
//! its files while it runs, so that no other process takes them.

use crate::state_folder::{is_still_at, open_private};
use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::time::Instant;
use wharf_store::CallRow;

/// Part of a spool file's name that follows the name of the database.
const FILE_MARK: &str = "-calls.";

/// Size in bytes above which a new file is begun. A file is read as a whole.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Maximum size of all files in bytes. It is reached only while the database is away.
const MAX_SPOOL_BYTES: u64 = 256 << 20;

/// Number of full files whose calls are also in memory. The others are read back.
const MAX_CACHED_FILES: usize = 4;

/// Size in bytes up to which the buffer for encoded calls is kept.
const MAX_ENCODED_BYTES: usize = 64 << 10;

/// Probe that is written to check for free space: as large as a call with long arguments.
const PROBE: &[u8] = &[0; 64 << 10];

/// Makes the file names of one process unique.
static FILE_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Calls in files, oldest first.
#[derive(Debug)]
pub(super) struct Spool {
    /// Path that the names of all files begin with.
    base: PathBuf,
    /// Full files, and those of processes that have exited.
    full: VecDeque<SpoolFile>,
    /// The file that calls are appended to.
    active: SpoolFile,
    /// Number of calls that were spooled, and of those adopted.
    spooled: u64,
    /// Calls that wait for the next write, which appends all of them.
    staged: Vec<StagedCall>,
    next_ticket: u64,
    /// Buffer for encoded calls.
    encoded: Vec<u8>,
}

/// A call that is not written yet. Its caller holds the ticket.
#[derive(Debug)]
struct StagedCall {
    ticket: u64,
    row: CallRow,
}

#[derive(Debug)]
struct SpoolFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    rows: usize,
    /// All of its calls, or none: it then has to be read.
    cached: Vec<CallRow>,
    /// When the first row was appended.
    begun: Instant,
}

impl Spool {
    /// Creates a spool whose file names begin with `base`, and adopts files whose owner has exited.
    pub(super) fn open(base: &Path) -> io::Result<Spool> {
        let full = SpoolFile::adopt_all(base)?;
        let active = SpoolFile::create(base)?;
        let (staged, encoded) = (Vec::new(), Vec::new());
        let base = base.to_owned();
        let mut spool = Spool { base, full, active, spooled: 0, staged, next_ticket: 0, encoded };
        spool.spooled = spool.rows() as u64;
        Ok(spool)
    }

    /// Total number of calls that were spooled, with those of processes that have exited.
    pub(super) fn spooled(&self) -> u64 {
        self.spooled
    }

    /// Number of calls.
    pub(super) fn rows(&self) -> usize {
        self.files().map(|it| it.rows).sum()
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files().map(|it| it.bytes).sum()
    }

    /// Returns when the first call was appended to the active file. Returns `None` if other files are full.
    pub(super) fn collects_since(&self) -> Option<Instant> {
        (self.full.is_empty() && self.active.bytes < MAX_FILE_BYTES).then_some(self.active.begun)
    }

    /// Appends all of these calls or, on an error, none. After it returns, they survive a kill of this process.
    pub(super) fn append(&mut self, rows: Vec<CallRow>) -> io::Result<()> {
        self.encoded.clear();
        rows.iter().for_each(|row| row.encode(&mut self.encoded));
        self.write_encoded(rows.len())?;
        self.active.cached.extend(rows);
        Ok(())
    }

    /// Adds a call to the next write, and returns the ticket for [`Spool::commit`].
    pub(super) fn stage(&mut self, row: CallRow) -> u64 {
        self.next_ticket += 1;
        self.staged.push(StagedCall { ticket: self.next_ticket, row });
        self.next_ticket
    }

    /// Writes all staged calls, unless another caller has written this one. Returns the call if that fails. After it
    /// returns `None`, the call survives a kill of this process.
    pub(super) fn commit(&mut self, ticket: u64) -> Option<CallRow> {
        let index = self.staged.iter().position(|it| it.ticket == ticket)?;
        self.encoded.clear();
        self.staged.iter().for_each(|it| it.row.encode(&mut self.encoded));
        if self.write_encoded(self.staged.len()).is_err() {
            return Some(self.staged.remove(index).row);
        }
        self.active.cached.extend(self.staged.drain(..).map(|it| it.row));
        None
    }

    /// Writes the encoded calls to the active file and counts them.
    fn write_encoded(&mut self, rows: usize) -> io::Result<()> {
        if self.bytes() + self.encoded.len() as u64 > MAX_SPOOL_BYTES {
            return Err(io::Error::other("the spool is full, and the database does not accept its calls"));
        }
        if self.active.bytes >= MAX_FILE_BYTES {
            self.rotate()?;
        }
        self.active.write(&self.encoded, rows)?;
        self.spooled += rows as u64;
        self.encoded.shrink_to(MAX_ENCODED_BYTES);
        Ok(())
    }

    /// Checks for free space by writing a probe and removing it.
    pub(super) fn has_room(&mut self) -> bool {
        let fits = self.bytes() + PROBE.len() as u64 <= MAX_SPOOL_BYTES;
        let fits = fits && self.active.file.write_all(PROBE).is_ok();
        self.active.truncate().is_ok() && fits
    }

    /// Returns the calls of the oldest file. It stays in the spool until [`Spool::remove_oldest`].
    pub(super) fn read_oldest(&mut self) -> io::Result<Vec<CallRow>> {
        if self.full.is_empty() {
            self.rotate()?;
        }
        let Some(oldest) = self.full.front_mut() else { return Ok(Vec::new()) };
        match std::mem::take(&mut oldest.cached) {
            cached if cached.len() == oldest.rows => Ok(cached),
            _ => oldest.read(),
        }
    }

    /// Deletes the oldest file, because its calls are in the database.
    pub(super) fn remove_oldest(&mut self) -> io::Result<()> {
        let Some(oldest) = self.full.front() else { return Ok(()) };
        fs::remove_file(&oldest.path)?;
        self.full.pop_front();
        Ok(())
    }

    /// Begins a new active file.
    fn rotate(&mut self) -> io::Result<()> {
        let mut new = SpoolFile::create(&self.base)?;
        // The next file is likely to be as long.
        new.cached.reserve(self.active.cached.len());
        if self.full.len() >= MAX_CACHED_FILES {
            self.active.cached = Vec::new();
        }
        self.full.push_back(std::mem::replace(&mut self.active, new));
        Ok(())
    }

    fn files(&self) -> impl Iterator<Item = &SpoolFile> {
        self.full.iter().chain([&self.active])
    }
}

impl Drop for Spool {
    /// Removes an empty file, so that the next process has nothing to adopt.
    fn drop(&mut self) {
        if self.active.bytes == 0 {
            let _ = fs::remove_file(&self.active.path);
        }
    }
}

impl SpoolFile {
    /// Creates a file and locks it.
    fn create(base: &Path) -> io::Result<SpoolFile> {
        loop {
            let number = FILE_NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut name = base.as_os_str().to_owned();
            name.push(format!("{FILE_MARK}{}-{number}", process::id()));
            // The file may belong to a process with the same id in another container.
            if let Some(new) = SpoolFile::lock(name.into())?
                && new.bytes == 0
            {
                return Ok(new);
            }
        }
    }

    /// Finds and locks the files whose owner has exited, oldest first.
    fn adopt_all(base: &Path) -> io::Result<VecDeque<SpoolFile>> {
        let (Some(folder), Some(name)) = (base.parent(), base.file_name()) else {
            return Ok(VecDeque::new());
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let mark = format!("{}{FILE_MARK}", name.to_string_lossy());
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_ours = path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&mark));
            if is_ours && let Some(mut file) = SpoolFile::lock(path)? {
                file.rows = file.read()?.len();
                match file.rows {
                    0 => fs::remove_file(&file.path)?,
                    _ => found.push((file.file.metadata()?.modified()?, file)),
                }
            }
        }
        found.sort_by_key(|(modified, _)| *modified);
        Ok(found.into_iter().map(|(_, file)| file).collect())
    }

    /// Opens a file, and returns `None` if another process has it or has just removed it.
    fn lock(path: PathBuf) -> io::Result<Option<SpoolFile>> {
        let file = open_private(&path)?;
        if file.try_lock().is_err() || !is_still_at(&file, &path) {
            return Ok(None);
        }
        let bytes = file.metadata()?.len();
        Ok(Some(SpoolFile { path, file, bytes, rows: 0, cached: Vec::new(), begun: Instant::now() }))
    }

    /// Appends encoded calls to the file, but not to the cache.
    fn write(&mut self, encoded: &[u8], rows: usize) -> io::Result<()> {
        if let Err(error) = self.file.write_all(encoded) {
            self.truncate()?;
            return Err(error);
        }
        if self.rows == 0 {
            self.begun = Instant::now();
        }
        self.bytes += encoded.len() as u64;
        self.rows += rows;
        Ok(())
    }

    fn read(&mut self) -> io::Result<Vec<CallRow>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or_default());
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(self.bytes).read_to_end(&mut bytes)?;
        Ok(CallRow::decode_all(&bytes).collect())
    }

    /// Removes what was written beyond the last complete append. Every write appends, so no seek is needed.
    fn truncate(&self) -> io::Result<()> {
        self.file.set_len(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    type Tried = Result<(), Box<dyn Error>>;

    fn call(name: &str) -> CallRow {
        CallRow { request_id: name.into(), ..CallRow::default() }
    }

    #[test]
    fn a_file_is_returned_until_it_is_removed() -> Tried {
        let folder = tempfile::tempdir()?;
        let mut spool = Spool::open(&folder.path().join("wharf.db"))?;
        spool.append(vec![call("one")])?;
        spool.append(vec![call("two")])?;
        assert_eq!(spool.read_oldest()?, [call("one"), call("two")]);
        spool.append(vec![call("three")])?;
        assert_eq!((spool.read_oldest()?, spool.rows()), (vec![call("one"), call("two")], 3));
        spool.remove_oldest()?;
        assert_eq!((spool.read_oldest()?, spool.rows()), (vec![call("three")], 1));
        Ok(())
    }

    #[test]
    fn staged_calls_are_written_together() -> Tried {
        let folder = tempfile::tempdir()?;
        let mut spool = Spool::open(&folder.path().join("wharf.db"))?;
        let (one, two) = (spool.stage(call("one")), spool.stage(call("two")));
        assert_eq!((spool.rows(), spool.spooled()), (0, 0));
        assert_eq!(spool.commit(two), None);
        assert_eq!((spool.rows(), spool.spooled()), (2, 2));
        assert_eq!((spool.commit(one), spool.rows()), (None, 2), "it is written");
        assert_eq!(spool.read_oldest()?, [call("one"), call("two")]);
        Ok(())
    }

    #[test]
    fn each_caller_gets_back_its_own_call_if_the_spool_is_full() -> Tried {
        let folder = tempfile::tempdir()?;
        let mut spool = Spool::open(&folder.path().join("wharf.db"))?;
        let (one, two) = (spool.stage(call("one")), spool.stage(call("two")));
        spool.active.bytes = MAX_SPOOL_BYTES;
        assert_eq!(spool.commit(one), Some(call("one")));
        assert_eq!(spool.commit(two), Some(call("two")));
        spool.active.bytes = 0;
        let three = spool.stage(call("three"));
        assert_eq!(spool.commit(three), None);
        assert_eq!(spool.read_oldest()?, [call("three")]);
        Ok(())
    }

    #[test]
    fn a_full_spool_accepts_nothing_until_a_file_is_removed() -> Tried {
        let folder = tempfile::tempdir()?;
        let mut spool = Spool::open(&folder.path().join("wharf.db"))?;
        spool.append(vec![call("one")])?;
        assert!(spool.has_room());
        // A sparse file counts as full but uses no disk space.
        spool.active.bytes = MAX_SPOOL_BYTES;
        spool.active.truncate()?;
        assert!(spool.append(vec![call("two")]).is_err());
        assert!(!spool.has_room());
        assert_eq!(spool.read_oldest()?, [call("one")]);
        spool.remove_oldest()?;
        spool.append(vec![call("two")])?;
        assert_eq!(spool.read_oldest()?, [call("two")]);
        Ok(())
    }

    #[test]
    fn files_are_adopted_when_their_owner_has_exited() -> Tried {
        let folder = tempfile::tempdir()?;
        let base = folder.path().join("wharf.db");
        let mut first = Spool::open(&base)?;
        first.append(vec![call("one")])?;
        assert_eq!(Spool::open(&base)?.rows(), 0, "its owner is running");
        drop(first);
        let mut next = Spool::open(&base)?;
        assert_eq!((next.rows(), next.read_oldest()?), (1, vec![call("one")]));
        next.remove_oldest()?;
        drop(next);
        assert_eq!(fs::read_dir(folder.path())?.count(), 0, "empty files are removed");
        Ok(())
    }
}
