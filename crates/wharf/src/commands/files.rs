//! Writes files atomically.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// Replaces a file atomically, or creates it with these permissions. A symbolic link stays a link, and an existing
/// file keeps its permissions.
pub(super) fn replace(file: &Path, text: &str, is_new: bool, mode: u32) -> io::Result<()> {
    // Replace the file that a symbolic link points to, not the link.
    let file = if is_new { file.to_owned() } else { file.canonicalize()? };
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(permissions(&file, mode)?)?;
    new.as_file().sync_all()?;
    match is_new {
        true => new.persist_noclobber(&file).map(drop).map_err(Into::into),
        false => new.persist(&file).map(drop).map_err(Into::into),
    }
}

/// Creates a file. Fails if it exists.
pub(super) fn create(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)?.write_all(text.as_bytes()).inspect_err(|_| _ = fs::remove_file(path))
}

#[cfg(unix)]
fn permissions(file: &Path, mode: u32) -> io::Result<fs::Permissions> {
    match fs::metadata(file) {
        Ok(metadata) => Ok(metadata.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(std::os::unix::fs::PermissionsExt::from_mode(mode))
        }
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn permissions(file: &Path, _mode: u32) -> io::Result<fs::Permissions> {
    fs::metadata(file).or_else(|_| fs::metadata(".")).map(|it| it.permissions())
}
