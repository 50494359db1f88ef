//! The state folder. Only its owner may read it, because its database contains the arguments of every call.
//!
//! New folders and files are created with private permissions one by one. The process does not change its umask,
//! because servers would inherit it and create unreadable files in their users' projects.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// Creates a folder that only its owner may enter, and its missing parents.
pub(crate) fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Checks that the folder, or its nearest existing parent, is writable. Creates nothing.
pub(crate) fn check_writable(folder: &Path) -> io::Result<()> {
    let Some(nearest) = folder.ancestors().find(|it| it.exists()) else { return Ok(()) };
    if !nearest.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    #[cfg(unix)]
    {
        use rustix::fs::{Access, access};
        access(nearest, Access::WRITE_OK | Access::EXEC_OK)?;
    }
    Ok(())
}

/// Creates a temporary folder that replaces an unwritable state folder. Its name is the same each time, so that
/// commands share it. If that name belongs to another user or is not private, the folder gets a random name.
pub(crate) fn make_fallback_folder(temporary: &Path) -> io::Result<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        let user = rustix::process::geteuid().as_raw();
        let folder = temporary.join(format!("wharf-{user}"));
        let made = fs::DirBuilder::new().mode(0o700).create(&folder);
        let is_ours =
            |it: fs::Metadata| it.is_dir() && it.uid() == user && it.mode() & OTHERS_PERMISSIONS == 0;
        if made.is_ok() || fs::symlink_metadata(&folder).is_ok_and(is_ours) {
            return Ok(folder);
        }
    }
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    Ok(builder.prefix("wharf-").tempdir_in(temporary)?.keep())
}

/// Opens a file for reading and appending. Creates it, readable by its owner only, if it is missing.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns whether the open file is still the one at this path, and was not removed or replaced.
pub(crate) fn is_still_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |it: io::Result<fs::Metadata>| it.map(|it| (it.dev(), it.ino())).ok();
        number(file.metadata()) == number(fs::metadata(path))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Removes the permissions of other users from a state folder and wharf's files in it, because earlier versions left
/// both to the umask. Skips a folder of another user, and a shared one with the sticky bit, such as `/tmp`.
#[cfg(unix)]
pub(crate) fn protect(folder: &Path) {
    use rustix::process::geteuid;
    use std::os::unix::fs::MetadataExt;

    const STICKY: u32 = 0o1000;
    let Ok(found) = fs::metadata(folder) else { return };
    let is_ours = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & STICKY == 0;
    if !is_ours || found.mode() & OTHERS_PERMISSIONS == 0 {
        return;
    }
    if let Err(error) = remove_others_permissions(folder) {
        let folder = folder.display();
        tracing::warn!(target: "wharf::state", "other users may read `{folder}`: {error}");
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_folder = ["catalogs", "credentials", "scratch"].contains(&&*name);
        let is_file = ["wharf.db", "postgres-"].iter().any(|it| name.starts_with(it));
        // Failures are ignored: the folder itself is private by now, so its files are unreachable for others.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && is_folder => _ = remove_others_permissions(&entry.path()),
            Ok(kind) if kind.is_file() && is_file => _ = remove_others_permissions(&entry.path()),
            _ => {}
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn protect(_folder: &Path) {}

/// Returns whether only the owner has permissions on the file.
#[cfg(unix)]
pub(crate) fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|it| it.permissions().mode() & OTHERS_PERMISSIONS == 0)
}

#[cfg(not(unix))]
pub(crate) fn is_private(_path: &Path) -> bool {
    true
}

/// The permission bits of group and others.
#[cfg(unix)]
const OTHERS_PERMISSIONS: u32 = 0o077;

/// Removes the permissions of group and others. The owner's stay, because a folder may be read-only on purpose.
#[cfg(unix)]
fn remove_others_permissions(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path)?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS_PERMISSIONS))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    #[test]
    fn fallback_folder_is_private_and_reused() {
        let temporary = TempDir::new().expect("a folder");
        let first = make_fallback_folder(temporary.path()).expect("a folder");
        assert!(is_private(&first));
        assert_eq!(make_fallback_folder(temporary.path()).expect("a folder"), first);
    }

    /// In a world-writable folder, another user may have created the name first.
    #[test]
    fn exposed_or_linked_fallback_folder_is_not_used() {
        let temporary = TempDir::new().expect("a folder");
        let usual = make_fallback_folder(temporary.path()).expect("a folder");
        fs::set_permissions(&usual, fs::Permissions::from_mode(0o755)).expect("a mode");
        let other = make_fallback_folder(temporary.path()).expect("a folder");
        assert!(other != usual && is_private(&other));
        fs::remove_dir(&usual).expect("it is empty");
        let elsewhere = TempDir::new().expect("a folder");
        symlink(elsewhere.path(), &usual).expect("a link");
        let other = make_fallback_folder(temporary.path()).expect("a folder");
        assert!(other != usual && is_private(&other));
    }
}
