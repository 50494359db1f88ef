//! Calls that are answered but not in the database yet: two files beside it, one that is written to and one that is
//! being brought in.
//!
//! To append to a file costs a call next to nothing, and what is in it survives a kill: whoever starts next brings in
//! what others have left behind. The files are locked as long as their owner lives, so nobody takes them from it.

use crate::state_folder::{is_still_at, open_private};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// What the name of a spool begins with, after the name of its database.
const MARK: &str = "-calls.";

/// The most that one file takes. Callers are held up long before; this much waits only if the database is gone for good.
const LIMIT: u64 = 256 << 20;

/// What is written to find out whether there is room: as much as a call with long arguments.
const PROBE: &[u8] = &[0; 64 << 10];

/// Makes the names of spools of one process differ.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Two files of calls.
#[derive(Debug)]
pub(crate) struct Spool {
    /// The one that is written to.
    active: Leaf,
    /// The one that is empty, or being brought in.
    other: Leaf,
}

#[derive(Debug)]
struct Leaf {
    path: PathBuf,
    file: File,
    length: u64,
    entries: usize,
}

/// What a spool holds that nobody has brought in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) bytes: u64,
    pub(crate) entries: usize,
}

/// A file that somebody has left behind, now ours. Forgotten only when it is brought in.
#[derive(Debug)]
pub(crate) struct Left {
    path: PathBuf,
    file: File,
}

impl Spool {
    /// A new spool beside a database.
    pub(crate) fn beside(database: &Path) -> io::Result<Spool> {
        Ok(Spool { active: Leaf::new(database)?, other: Leaf::new(database)? })
    }

    /// Adds so many entries: all of them, or none.
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

    /// What is not being brought in yet.
    pub(crate) fn load(&self) -> Load {
        Load { bytes: self.active.length, entries: self.active.entries }
    }

    /// How many entries are not safe elsewhere.
    pub(crate) fn waiting(&self) -> u64 {
        (self.active.entries + self.other.entries) as u64
    }

    /// Whether there is room for more, found out by writing something.
    pub(crate) fn has_room(&mut self) -> bool {
        let leaf = &mut self.active;
        let fits = leaf.length + PROBE.len() as u64 <= LIMIT && leaf.file.write_all(PROBE).is_ok();
        leaf.back_to(leaf.length).is_ok() && fits
    }

    /// Turns the page: gives all that was written, and writes to the other file from now on. What an earlier page holds
    /// that was not forgotten is given again.
    pub(crate) fn turn(&mut self) -> io::Result<Vec<u8>> {
        if self.other.length == 0 {
            std::mem::swap(&mut self.active, &mut self.other);
        }
        self.other.read()
    }

    /// What was given is safe elsewhere.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        self.other.back_to(0)
    }
}

impl Drop for Spool {
    /// An empty file need not be found by whoever comes next.
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
            // It may be that of a process with our number in another container, or just be taken for one left behind.
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

    /// Every write goes to the end, so cutting is all it takes.
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
    /// Everything beside a database whose owner is gone.
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
            // Somebody else may just have brought it in.
            let Ok(file) = OpenOptions::new().read(true).open(&path) else { continue };
            if file.try_lock().is_ok() {
                all.push(Left { path, file });
            }
        }
        Ok(all)
    }

    /// What is in it.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&self.file).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// It is safe elsewhere.
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
        // A file with a hole counts as full and costs nothing.
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
