//! Creates the env files beside an agent file, all of them or none, and keeps them out of version control.

use super::files;
use crate::import::EnvFile;
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

/// The `.gitignore` line for env files.
const GITIGNORE_LINE: &str = ".env.*";

/// Returns the folder of an agent file.
pub(super) fn folder_of(agent_file: &Path) -> &Path {
    agent_file.parent().unwrap_or(Path::new(""))
}

/// Returns the names of the existing env files.
pub(super) fn names(folder: &Path) -> BTreeSet<String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|it| it.file_name().into_string().ok()).filter(|it| it.starts_with(".env.")).collect()
}

/// Writes the env files, then runs `finish`. Deletes the files again if any step fails.
pub(super) fn write(
    folder: &Path,
    env_files: &[EnvFile],
    finish: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<PathBuf>, String> {
    let mut written: Vec<PathBuf> = Vec::new();
    let all = env_files.iter().try_for_each(|it| {
        let path = folder.join(&it.name);
        files::create(&path, &it.text, 0o600).map_err(|error| write_error(&path, &error))?;
        written.push(path);
        Ok(())
    });
    match all.and_then(|()| finish()) {
        Ok(()) => Ok(written),
        Err(complaint) => {
            written.iter().for_each(|it| _ = fs::remove_file(it));
            Err(complaint)
        }
    }
}

/// Adds the line for env files to the folder's `.gitignore` unless it is already there. Returns the path if it
/// changed.
pub(super) fn add_to_gitignore(folder: &Path) -> Result<Option<PathBuf>, String> {
    let path = folder.join(".gitignore");
    let before = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(write_error(&path, &error)),
    };
    let text = before.as_deref().unwrap_or_default();
    if text.lines().any(|it| matches!(it.trim(), GITIGNORE_LINE | "/.env.*" | ".env*" | "/.env*" | ".*")) {
        return Ok(None);
    }
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { line_end };
    let after = format!("{text}{gap}{GITIGNORE_LINE}{line_end}");
    files::replace(&path, &after, before.is_none(), 0o644).map_err(|error| write_error(&path, &error))?;
    Ok(Some(path))
}

/// Formats the error for a file that cannot be written.
pub(super) fn write_error(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!(
                "error: {path} already exists and is not overwritten\nhelp: `-f FILE` selects another file\n"
            )
        }
        _ => format!("error: {path} cannot be written: {error}\n"),
    }
}
