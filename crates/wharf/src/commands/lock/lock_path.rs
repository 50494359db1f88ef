//! Finds, reads and writes the lock file beside the agent file.

use super::super::files::replace;
use crate::{cli::GlobalOptions, command_error::CommandError, environment::Environment, exit::Exit};
use std::path::{Path, PathBuf};
use wharf_config::{FileError, LOCK_FILE, LockFile, MAX_LOCK_BYTES, read_regular};

/// Permissions of a new file. It contains no secrets.
const MODE: u32 = 0o644;

/// Path of the lock file.
pub(super) struct LockPath(PathBuf);

impl LockPath {
    pub(super) fn of(common: &GlobalOptions, environment: &Environment) -> LockPath {
        let file = environment.folder.join(&common.file);
        let folder = file.parent().map_or_else(|| environment.folder.clone(), Path::to_owned);
        LockPath(folder.join(LOCK_FILE))
    }

    /// Reads the file, if it exists.
    pub(super) fn read(&self) -> Result<Option<LockFile>, CommandError> {
        match read_regular(&self.0, MAX_LOCK_BYTES) {
            Ok(bytes) => parse(&bytes, LOCK_FILE).map(Some),
            Err(FileError::Missing) => Ok(None),
            Err(error) => Err(unreadable(LOCK_FILE, &error)),
        }
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, text: &str) -> Result<(), CommandError> {
        replace(&self.0, text, !self.0.exists(), MODE).map_err(|error| {
            CommandError::new("MCPError", &format!("cannot write {LOCK_FILE}: {error}"), Exit::OutputError)
        })
    }

    /// Writes the file, if it can be read again. One that cannot would stop the agent.
    pub(super) fn write_valid(&self, lock: &LockFile) -> Result<(), CommandError> {
        let text = lock.to_text();
        LockFile::parse(text.as_bytes()).map_err(|error| {
            CommandError::new("MCPError", &format!("cannot lock these servers: {error}"), Exit::ToolError)
        })?;
        self.write(&text)
    }

    pub(super) fn missing(&self) -> CommandError {
        CommandError::usage("there is no wharf.lock beside the agent file\nhelp: `wharf lock` writes one")
    }
}

/// Reads any lock file.
pub(super) fn read_file(path: &Path) -> Result<LockFile, CommandError> {
    let name = path.display().to_string();
    let bytes = read_regular(path, MAX_LOCK_BYTES).map_err(|error| unreadable(&name, &error))?;
    parse(&bytes, &name)
}

fn parse(bytes: &[u8], name: &str) -> Result<LockFile, CommandError> {
    LockFile::parse(bytes).map_err(|error| CommandError::usage(&format!("{name} cannot be used: {error}")))
}

fn unreadable(name: &str, error: &FileError) -> CommandError {
    CommandError::usage(&format!("{name} {error}"))
}
