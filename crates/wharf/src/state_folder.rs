//! The state folder, which only its owner may read: the database in it has the arguments of every call.
//!
//! New folders and files are made private one by one. The process does not change its umask, because servers would inherit
//! it and make unreadable files in their users' projects.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

/// Makes a folder that only its owner may enter, and the missing folders above it.
pub(crate) fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
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
    if let Err(error) = set_mode(folder, 0o700) {
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
            Ok(kind) if kind.is_dir() && is_folder => _ = set_mode(&entry.path(), 0o700),
            Ok(kind) if kind.is_file() && is_file => _ = set_mode(&entry.path(), 0o600),
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

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
