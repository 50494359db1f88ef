//! The spool: two files beside a database that hold calls which are answered but not in the database yet. One is
//! appended to while the other is being moved into the database.
//!
//! An append is cheap and survives a kill of the process: the next process recovers the files. The owner holds a lock
//! on its files while it runs, so that no other process takes them.

use crate::state_folder::{is_still_at, open_private};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// Part of a spool file's name that follows the name of the database.
const MARK: &str = "-calls.";

/// Maximum size of one file, in bytes. Callers wait long before that; the limit is reached only while the database is
/// gone.
const LIMIT: u64 = 256 << 20;

/// Probe that is written to check for free space: as large as a call with long arguments.
const PROBE: &[u8] = &[0; 64 << 10];

/// Makes the file names of one process unique.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Two files with calls.
#[derive(Debug)]
pub(crate) struct Spool {
    /// The file that calls are appended to.
    active: Leaf,
    /// The file that is empty or being moved into the database.
    other: Leaf,
}

#[derive(Debug)]
struct Leaf {
    path: PathBuf,
    file: File,
    length: u64,
    entries: usize,
}

/// Amount of data in the active file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) bytes: u64,
    pub(crate) entries: usize,
}

/// A spool file of a process that has exited, now locked by this one. It is deleted only after its calls have been
/// moved.
#[derive(Debug)]
pub(crate) struct Left {
    path: PathBuf,
    file: File,
}

impl Spool {
    /// Creates a spool beside a database.
    pub(crate) fn beside(database: &Path) -> io::Result<Spool> {
        Ok(Spool { active: Leaf::new(database)?, other: Leaf::new(database)? })
    }

    /// Appends all of these entries or, on an error, none.
    pub(crate) fn append(&mut self, bytes: &[u8], entries: usize) -> io::Result<Load> {
        let leaf = &mut self.active;
        if leaf.length + bytes.len() as u64 > LIMIT {
            return Err(io::Error::other("the spool is full, and the database does not take it"));
        }
        if let Err(error) = leaf.file.write_all(bytes) {
            leaf.back_to(leaf.length)?;
            return Err(error);
        }
        leaf.length += bytes.len() as u64;
        leaf.entries += entries;
        Ok(self.load())
    }

    /// The amount of data in the active file.
    pub(crate) fn load(&self) -> Load {
        Load { bytes: self.active.length, entries: self.active.entries }
    }

    /// Number of entries in both files.
    pub(crate) fn waiting(&self) -> u64 {
        (self.active.entries + self.other.entries) as u64
    }

    /// Checks for free space by writing a probe and removing it.
    pub(crate) fn has_room(&mut self) -> bool {
        let leaf = &mut self.active;
        let fits = leaf.length + PROBE.len() as u64 <= LIMIT && leaf.file.write_all(PROBE).is_ok();
        leaf.back_to(leaf.length).is_ok() && fits
    }

    /// Swaps the files and returns the content of the one written so far. If the previous page was not forgotten yet,
    /// returns that page again.
    pub(crate) fn turn(&mut self) -> io::Result<Vec<u8>> {
        if self.other.length == 0 {
            std::mem::swap(&mut self.active, &mut self.other);
        }
        self.other.read()
    }

    /// Truncates the file whose content was returned by [`Spool::turn`], because it is now in the database.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        self.other.back_to(0)
    }
}

impl Drop for Spool {
    /// Removes empty files, so that the next process has nothing to recover.
    fn drop(&mut self) {
        for leaf in [&self.active, &self.other] {
            if leaf.length == 0 {
                let _ = fs::remove_file(&leaf.path);
            }
        }
    }
}

impl Leaf {
    fn new(database: &Path) -> io::Result<Leaf> {
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut name = database.as_os_str().to_owned();
            name.push(format!("{MARK}{}-{number}", process::id()));
            let path = PathBuf::from(name);
            let file = open_private(&path)?;
            // The file may belong to a process with the same id in another container, or another process may be
            // recovering it.
            if file.try_lock().is_ok() && is_still_at(&file, &path) {
                let length = file.metadata()?.len();
                return Ok(Leaf { path, file, length, entries: 0 });
            }
        }
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.length).unwrap_or_default());
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(self.length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Truncates the file. Every write appends, so no seek is needed.
    fn back_to(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.length = length;
        if length == 0 {
            self.entries = 0;
        }
        Ok(())
    }
}

impl Left {
    /// Finds and locks the spool files beside a database whose owner has exited.
    pub(crate) fn beside(database: &Path) -> io::Result<Vec<Left>> {
        let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else {
            return Ok(Vec::new());
        };
        let mark = format!("{}{MARK}", name.to_string_lossy());
        let mut all = Vec::new();
        for entry in fs::read_dir(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })? {
            let path = entry?.path();
            let is_one = path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&mark));
            if !is_one {
                continue;
            }
            // Another process may just have recovered and deleted it.
            let Ok(file) = OpenOptions::new().read(true).open(&path) else { continue };
            if file.try_lock().is_ok() {
                all.push(Left { path, file });
            }
        }
        Ok(all)
    }

    /// Reads the whole file.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&self.file).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Deletes the file, because its calls are in the database.
    pub(crate) fn forget(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    type Tried = Result<(), Box<dyn Error>>;

    #[test]
    fn a_page_is_given_until_it_is_forgotten() -> Tried {
        let folder = tempfile::tempdir()?;
        let mut spool = Spool::beside(&folder.path().join("wharf.db"))?;
        spool.append(b"one ", 1)?;
        assert_eq!(spool.append(b"two ", 1)?, Load { bytes: 8, entries: 2 });
        assert_eq!(spool.turn()?, b"one two ");
        spool.append(b"three ", 1)?;
        assert_eq!(spool.turn()?, b"one two ", "it was not forgotten");
        spool.forget()?;
        assert_eq!(spool.turn()?, b"three ");
        spool.append(b"four ", 1)?;
        spool.forget()?;
        assert_eq!(spool.turn()?, b"four ");
        Ok(())
    }

    #[test]
    fn a_spool_at_its_limit_takes_nothing_more_until_it_is_brought_in() -> Tried {
        let folder = tempfile::tempdir()?;
        let mut spool = Spool::beside(&folder.path().join("wharf.db"))?;
        spool.append(b"one ", 1)?;
        assert!(spool.has_room());
        // A sparse file counts as full but uses no disk space.
        spool.active.file.set_len(LIMIT)?;
        spool.active.length = LIMIT;
        assert!(spool.append(b"two ", 1).is_err());
        assert!(!spool.has_room());
        assert_eq!((spool.waiting(), spool.load().bytes), (1, LIMIT));
        std::mem::swap(&mut spool.active, &mut spool.other);
        spool.forget()?;
        spool.append(b"two ", 1)?;
        assert_eq!(spool.turn()?, b"two ");
        Ok(())
    }

    #[test]
    fn what_is_left_behind_is_found_and_what_is_in_use_is_not() -> Tried {
        let folder = tempfile::tempdir()?;
        let database = folder.path().join("wharf.db");
        let mut spool = Spool::beside(&database)?;
        spool.append(b"one ", 1)?;
        assert!(Left::beside(&database)?.is_empty(), "its owner lives");
        drop(spool);
        let left = Left::beside(&database)?;
        let all: Vec<Vec<u8>> = left.iter().map(Left::read).collect::<Result<_, _>>()?;
        assert_eq!(all, [b"one ".to_vec()], "the empty one is gone by itself");
        left.into_iter().try_for_each(Left::forget)?;
        assert_eq!(fs::read_dir(folder.path())?.count(), 0);
        Ok(())
    }
}
