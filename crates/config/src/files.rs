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
    fn locate(&self, path: &str) -> Result<PathBuf, FileError>;
    /// Reads a regular file inside the folder. A file longer than `max_bytes` is rejected.
    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileError>;
    /// Returns the canonical path of a file inside the folder that only its owner can write.
    fn locate_trusted(&self, path: &str) -> Result<PathBuf, FileError> {
        self.locate(path)
    }
    /// Opens the folder of a plugin. It must lie under one of `roots` and must not be world-writable.
    fn open_plugin(
        &self,
        _path: &str,
        _roots: &[PathBuf],
    ) -> Result<Arc<dyn Files + Send + Sync>, FileError> {
        Err(FileError::OutsidePluginRoots)
    }
    /// Reads one of the operator's files, by absolute path. No other user may have access to it.
    fn read_private(&self, _path: &Path, _max_bytes: u64) -> Result<Vec<u8>, FileError> {
        Err(FileError::Missing)
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
pub enum FileError {
    /// The file does not exist.
    Missing,
    /// The path is outside the agent file's folder.
    Outside,
    /// The path is a folder, a pipe or a device.
    NotRegular(&'static str),
    /// The file is larger than this many bytes.
    TooLarge(u64),
    /// The path is not under any of the plugin roots.
    OutsidePluginRoots,
    /// Other users can write the file.
    WritableByOthers,
    /// Other users can read the file.
    ReadableByOthers,
    /// The operating system reported an error.
    Io(io::Error),
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
    fn locate(&self, path: &str) -> Result<PathBuf, FileError> {
        if path.contains('\0') {
            return Err(FileError::Missing);
        }
        let folder = self.0.canonicalize()?;
        let found = folder.join(path).canonicalize()?;
        if found.starts_with(&folder) { Ok(found) } else { Err(FileError::Outside) }
    }

    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        read_regular(&self.locate(path)?, max_bytes)
    }

    fn locate_trusted(&self, path: &str) -> Result<PathBuf, FileError> {
        let found = self.locate(path)?;
        let metadata = fs::metadata(&found)?;
        check_regular(&metadata)?;
        if has_mode_bits(&metadata, WRITABLE_BY_OTHERS) {
            Err(FileError::WritableByOthers)
        } else {
            Ok(found)
        }
    }

    fn open_plugin(&self, path: &str, roots: &[PathBuf]) -> Result<Arc<dyn Files + Send + Sync>, FileError> {
        if path.contains('\0') {
            return Err(FileError::Missing);
        }
        // Do not reveal whether a path outside the roots exists.
        let found = Path::new(path).canonicalize().map_err(|_| FileError::OutsidePluginRoots)?;
        let mut roots = roots.iter().filter_map(|it| it.canonicalize().ok());
        let root = roots.find(|it| found.starts_with(it)).ok_or(FileError::OutsidePluginRoots)?;
        if !found.is_dir() {
            return Err(FileError::NotRegular("no folder"));
        }
        for folder in found.ancestors().take_while(|it| it.starts_with(&root)) {
            if has_mode_bits(&fs::metadata(folder)?, WRITABLE_BY_ALL) {
                return Err(FileError::WritableByOthers);
            }
        }
        Ok(Arc::new(Folder(found)))
    }

    fn read_private(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        if has_mode_bits(&fs::metadata(path)?, ACCESSIBLE_BY_OTHERS) {
            return Err(FileError::ReadableByOthers);
        }
        read_regular(path, max_bytes)
    }

    fn find_on_path(&self, name: &str, path: &str) -> Option<PathBuf> {
        crate::find_program(name, path)
    }
}

impl Files for NoFiles {
    fn locate(&self, _path: &str) -> Result<PathBuf, FileError> {
        Err(FileError::Missing)
    }

    fn read(&self, _path: &str, _max_bytes: u64) -> Result<Vec<u8>, FileError> {
        Err(FileError::Missing)
    }
}

/// Reads a regular file of at most `max_bytes`. Never blocks on a pipe and never reads a device.
pub fn read_regular(path: &Path, max_bytes: u64) -> Result<Vec<u8>, FileError> {
    // Check before opening, because opening a device can have side effects.
    check_regular(&fs::metadata(path)?)?;
    let file = open_nonblocking(path)?;
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    if metadata.len() > max_bytes {
        return Err(FileError::TooLarge(max_bytes));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    // The file may grow while it is read, and files under /proc report a length of 0.
    if bytes.len() as u64 > max_bytes { Err(FileError::TooLarge(max_bytes)) } else { Ok(bytes) }
}

#[cfg(unix)]
fn open_nonblocking(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{Mode, OFlags};
    // If a pipe has replaced the file since the check, NONBLOCK keeps `open` from blocking.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(fs::File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open_nonblocking(path: &Path) -> io::Result<fs::File> {
    fs::File::open(path)
}

/// Permission bits to test: writable by everyone, writable by others than the owner, any access by others.
const WRITABLE_BY_ALL: u32 = 0o002;
const WRITABLE_BY_OTHERS: u32 = 0o022;
const ACCESSIBLE_BY_OTHERS: u32 = 0o077;

#[cfg(unix)]
fn has_mode_bits(metadata: &fs::Metadata, bits: u32) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & bits != 0
}

#[cfg(not(unix))]
fn has_mode_bits(_metadata: &fs::Metadata, _bits: u32) -> bool {
    false
}

fn check_regular(metadata: &fs::Metadata) -> Result<(), FileError> {
    if metadata.is_file() { Ok(()) } else { Err(FileError::NotRegular(kind(metadata))) }
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

impl FileError {
    /// Returns the message for a file in a plugin's folder instead of the agent file's folder.
    pub(crate) fn plugin_message(&self) -> String {
        match self {
            FileError::Outside => "is outside the plugin's folder".to_owned(),
            FileError::NotRegular("no folder") => "is not a folder".to_owned(),
            other => other.to_string(),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        match error.kind() {
            io::ErrorKind::NotFound => FileError::Missing,
            _ => FileError::Io(error),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Missing => f.write_str("does not exist"),
            FileError::Outside => f.write_str("is outside the folder of the agent file"),
            FileError::NotRegular(kind) => write!(f, "is {kind}, not a regular file"),
            FileError::TooLarge(max_bytes) => write!(f, "is larger than {} MiB", max_bytes / 1024 / 1024),
            FileError::OutsidePluginRoots => f.write_str("is not under any of the plugin roots"),
            FileError::WritableByOthers => f.write_str("can be written by others"),
            FileError::ReadableByOthers => f.write_str("can be read by others"),
            FileError::Io(error) => write!(f, "cannot be read: {error}"),
        }
    }
}
