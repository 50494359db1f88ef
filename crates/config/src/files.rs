//! Reads the files that a configuration may name: regular files inside the agent file's folder, and nothing else.

use std::{
    fmt, fs, io,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Finds and reads files that an agent file names.
pub trait Files {
    /// Returns the canonical path of an entry inside the folder, with all links resolved.
    fn locate(&self, path: &str) -> Result<PathBuf, FileTrouble>;
    /// Reads a regular file inside the folder. A file longer than `most` bytes is rejected.
    fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, FileTrouble>;
    /// Returns the canonical path of a file inside the folder that only its owner can write.
    fn trusted(&self, path: &str) -> Result<PathBuf, FileTrouble> {
        self.locate(path)
    }
    /// Opens the folder of a plugin. It must lie under one of `roots` and must not be world-writable.
    fn plugin(&self, _path: &str, _roots: &[PathBuf]) -> Result<Arc<dyn Files + Send + Sync>, FileTrouble> {
        Err(FileTrouble::Elsewhere)
    }
    /// Reads one of the operator's files, by absolute path. No other user may have access to it.
    fn private(&self, _path: &Path, _most: u64) -> Result<Vec<u8>, FileTrouble> {
        Err(FileTrouble::Missing)
    }
    /// Returns whether a folder in `path`, a PATH-style list, contains the program `name`.
    fn is_on_path(&self, name: &str, path: &str) -> bool {
        self.find_on_path(name, path).is_some()
    }
    /// Finds the program `name` in `path`, a PATH-style list of folders.
    fn find_on_path(&self, _name: &str, _path: &str) -> Option<PathBuf> {
        None
    }
}

/// Reason why a file cannot be used. Each message continues a sentence that begins "'envFile' `.env` …".
#[derive(Debug)]
pub enum FileTrouble {
    /// The file does not exist.
    Missing,
    /// The path lies outside the agent file's folder.
    Outside,
    /// The path is a folder, a pipe or a device.
    NotRegular(&'static str),
    /// The file is larger than this many bytes.
    TooLarge(u64),
    /// The path lies under none of the plugin roots.
    Elsewhere,
    /// Other users can write the file.
    Writable,
    /// Other users can read the file.
    Readable,
    /// The operating system reported an error.
    Unreadable(io::Error),
}

/// The folder of an agent file on disk.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Provides no files, for configuration that does not come from a folder.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Folder {
    /// Uses the folder at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }
}

impl Files for Folder {
    fn locate(&self, path: &str) -> Result<PathBuf, FileTrouble> {
        if path.contains('\0') {
            return Err(FileTrouble::Missing);
        }
        let folder = self.0.canonicalize()?;
        let found = folder.join(path).canonicalize()?;
        if found.starts_with(&folder) { Ok(found) } else { Err(FileTrouble::Outside) }
    }

    fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, FileTrouble> {
        read_regular(&self.locate(path)?, most)
    }

    fn trusted(&self, path: &str) -> Result<PathBuf, FileTrouble> {
        let found = self.locate(path)?;
        let metadata = fs::metadata(&found)?;
        refuse_irregular(&metadata)?;
        if may_others(&metadata, OTHERS) { Err(FileTrouble::Writable) } else { Ok(found) }
    }

    fn plugin(&self, path: &str, roots: &[PathBuf]) -> Result<Arc<dyn Files + Send + Sync>, FileTrouble> {
        if path.contains('\0') {
            return Err(FileTrouble::Missing);
        }
        // Do not reveal whether a path outside the roots exists.
        let found = Path::new(path).canonicalize().map_err(|_| FileTrouble::Elsewhere)?;
        let mut roots = roots.iter().filter_map(|it| it.canonicalize().ok());
        let root = roots.find(|it| found.starts_with(it)).ok_or(FileTrouble::Elsewhere)?;
        if !found.is_dir() {
            return Err(FileTrouble::NotRegular("no folder"));
        }
        for folder in found.ancestors().take_while(|it| it.starts_with(&root)) {
            if may_others(&fs::metadata(folder)?, EVERYBODY) {
                return Err(FileTrouble::Writable);
            }
        }
        Ok(Arc::new(Folder(found)))
    }

    fn private(&self, path: &Path, most: u64) -> Result<Vec<u8>, FileTrouble> {
        if may_others(&fs::metadata(path)?, ANYTHING) {
            return Err(FileTrouble::Readable);
        }
        read_regular(path, most)
    }

    fn find_on_path(&self, name: &str, path: &str) -> Option<PathBuf> {
        crate::find_program(name, path)
    }
}

impl Files for NoFiles {
    fn locate(&self, _path: &str) -> Result<PathBuf, FileTrouble> {
        Err(FileTrouble::Missing)
    }

    fn read(&self, _path: &str, _most: u64) -> Result<Vec<u8>, FileTrouble> {
        Err(FileTrouble::Missing)
    }
}

/// Reads a regular file of at most `most` bytes. Never blocks on a pipe and never reads a device.
pub fn read_regular(path: &Path, most: u64) -> Result<Vec<u8>, FileTrouble> {
    // Check before opening, because opening a device can have side effects.
    refuse_irregular(&fs::metadata(path)?)?;
    let file = open_without_waiting(path)?;
    let metadata = file.metadata()?;
    refuse_irregular(&metadata)?;
    if metadata.len() > most {
        return Err(FileTrouble::TooLarge(most));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    // The file may grow while it is read, and files under /proc report a length of 0.
    if bytes.len() as u64 > most { Err(FileTrouble::TooLarge(most)) } else { Ok(bytes) }
}

#[cfg(unix)]
fn open_without_waiting(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{Mode, OFlags};
    // If a pipe has replaced the file since the check, NONBLOCK keeps `open` from blocking.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(fs::File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path) -> io::Result<fs::File> {
    fs::File::open(path)
}

/// Permission bits to test: writable by everyone, writable by others than the owner, any access by others.
const EVERYBODY: u32 = 0o002;
const OTHERS: u32 = 0o022;
const ANYTHING: u32 = 0o077;

#[cfg(unix)]
fn may_others(metadata: &fs::Metadata, what: u32) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & what != 0
}

#[cfg(not(unix))]
fn may_others(_metadata: &fs::Metadata, _what: u32) -> bool {
    false
}

fn refuse_irregular(metadata: &fs::Metadata) -> Result<(), FileTrouble> {
    if metadata.is_file() { Ok(()) } else { Err(FileTrouble::NotRegular(kind(metadata))) }
}

#[cfg(unix)]
fn kind(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let file_type = metadata.file_type();
    match () {
        () if file_type.is_dir() => "a folder",
        () if file_type.is_fifo() => "a pipe",
        () if file_type.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(not(unix))]
fn kind(metadata: &fs::Metadata) -> &'static str {
    if metadata.is_dir() { "a folder" } else { "not a regular file" }
}

impl FileTrouble {
    /// Returns the message for a file in a plugin's folder instead of the agent file's folder.
    pub(crate) fn of_plugin(&self) -> String {
        match self {
            FileTrouble::Outside => "lies outside the plugin's folder".to_owned(),
            FileTrouble::NotRegular("no folder") => "is not a folder".to_owned(),
            other => other.to_string(),
        }
    }
}

impl From<io::Error> for FileTrouble {
    fn from(error: io::Error) -> FileTrouble {
        match error.kind() {
            io::ErrorKind::NotFound => FileTrouble::Missing,
            _ => FileTrouble::Unreadable(error),
        }
    }
}

impl fmt::Display for FileTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileTrouble::Missing => f.write_str("does not exist"),
            FileTrouble::Outside => f.write_str("lies outside the folder of the agent file"),
            FileTrouble::NotRegular(kind) => write!(f, "is {kind}, not a regular file"),
            FileTrouble::TooLarge(most) => write!(f, "is larger than {} MiB", most / 1024 / 1024),
            FileTrouble::Elsewhere => f.write_str("lies under none of the plugin roots"),
            FileTrouble::Writable => f.write_str("may be written to by others"),
            FileTrouble::Readable => f.write_str("can be read by others"),
            FileTrouble::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}
