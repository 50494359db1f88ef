//! The state folder, which only its owner may read: the database in it has the arguments of every call.
//!
//! New folders and files are made private one by one. The process does not change its umask, because servers would inherit
//! it and make unreadable files in their users' projects.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// Makes a folder that only its owner may enter, and the missing folders above it.
pub(crate) fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Checks that files can be made in a folder, or that the folder can be made. Makes neither.
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

/// Makes a folder among temporary ones that stands in for a state folder that cannot be written to: the same one each time,
/// so that commands find what others keep there, unless that name is somebody else's.
pub(crate) fn make_stand_in(temporary: &Path) -> io::Result<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        let user = rustix::process::geteuid().as_raw();
        let folder = temporary.join(format!("wharf-{user}"));
        let made = fs::DirBuilder::new().mode(0o700).create(&folder);
        let is_ours = |it: fs::Metadata| it.is_dir() && it.uid() == user && it.mode() & OTHERS == 0;
        if made.is_ok() || fs::symlink_metadata(&folder).is_ok_and(is_ours) {
            return Ok(folder);
        }
    }
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    Ok(builder.prefix("wharf-").tempdir_in(temporary)?.keep())
}

/// Opens a file for reading and writing, and makes it if it is missing: one that only its owner can read.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether an open file is still the one of this name, and not one that was removed meanwhile.
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

/// Takes the rights of other users away from a state folder and from what wharf keeps in it. Earlier versions left both
/// to the umask. A folder of another user, or one that is shared on purpose such as `/tmp`, stays as it is.
#[cfg(unix)]
pub(crate) fn protect(folder: &Path) {
    use rustix::process::geteuid;
    use std::os::unix::fs::MetadataExt;

    const STICKY: u32 = 0o1000;
    let Ok(found) = fs::metadata(folder) else { return };
    let is_ours = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & STICKY == 0;
    if !is_ours || found.mode() & OTHERS == 0 {
        return;
    }
    if let Err(error) = take_from_others(folder) {
        let folder = folder.display();
        tracing::warn!(target: "wharf::state", "other users may read `{folder}`: {error}");
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_folder = ["catalogs", "credentials", "scratch"].contains(&&*name);
        let is_file = ["wharf.db", "postgres-"].iter().any(|it| name.starts_with(it));
        // The folder itself is closed by now, so nobody else can come by a file that stays as it is.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && is_folder => _ = take_from_others(&entry.path()),
            Ok(kind) if kind.is_file() && is_file => _ = take_from_others(&entry.path()),
            _ => {}
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn protect(_folder: &Path) {}

/// Whether only its owner may read or change a file.
#[cfg(unix)]
pub(crate) fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|it| it.permissions().mode() & OTHERS == 0)
}

#[cfg(not(unix))]
pub(crate) fn is_private(_path: &Path) -> bool {
    true
}

/// The rights of everybody but the owner.
#[cfg(unix)]
const OTHERS: u32 = 0o077;

/// Leaves the owner's rights as they are: a folder may be read-only on purpose.
#[cfg(unix)]
fn take_from_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path)?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    #[test]
    fn a_stand_in_is_private_and_the_same_each_time() {
        let temporary = TempDir::new().expect("a folder");
        let first = make_stand_in(temporary.path()).expect("a folder");
        assert!(is_private(&first));
        assert_eq!(make_stand_in(temporary.path()).expect("a folder"), first);
    }

    /// In a folder where everybody may write, somebody else may have been there first.
    #[test]
    fn a_stand_in_that_others_could_read_or_lead_elsewhere_is_not_used() {
        let temporary = TempDir::new().expect("a folder");
        let usual = make_stand_in(temporary.path()).expect("a folder");
        fs::set_permissions(&usual, fs::Permissions::from_mode(0o755)).expect("a mode");
        let other = make_stand_in(temporary.path()).expect("a folder");
        assert!(other != usual && is_private(&other));
        fs::remove_dir(&usual).expect("it is empty");
        let elsewhere = TempDir::new().expect("a folder");
        symlink(elsewhere.path(), &usual).expect("a link");
        let other = make_stand_in(temporary.path()).expect("a folder");
        assert!(other != usual && is_private(&other));
    }
}
