//! Manages a server's working directory: private, initially empty, and removed with the server.
//!
//! A killed host leaves its directories behind; the next one removes them. A lock on the directory itself shows
//! whether its host is alive, because the kernel releases the lock however the host ends. The directory contains no
//! lock file that a server could find.

use super::UpstreamContext;
use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use wharf_mcp::Failure;

const PREFIX: &str = "wharf-";

/// Maximum number of directories checked in one sweep, and its time limit. The rest waits for the next sweep.
const MAX_SWEPT_DIRECTORIES: usize = 256;
const SWEEP_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of attempts to create a directory, in case a concurrent sweep removes it before it is locked.
const MAX_CREATE_TRIES: usize = 8;

/// A working directory in use.
#[derive(Debug)]
pub(crate) struct WorkingDirectory {
    folder: TempDir,
    /// The lock, released after the directory is removed.
    _held: Option<File>,
}

impl WorkingDirectory {
    /// Creates a working directory. It contains nothing that a launcher would read on its own.
    pub(super) fn new(context: &UpstreamContext) -> Result<WorkingDirectory, Failure> {
        let made =
            make_scratch(&context.scratch).and_then(|()| WorkingDirectory::in_folder(&context.scratch));
        made.map_err(|error| {
            let scratch = context.scratch.display();
            Failure::connect(format!("could not make a working directory in `{scratch}`: {error}"))
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn in_folder(scratch: &Path) -> io::Result<WorkingDirectory> {
        for _ in 0..MAX_CREATE_TRIES {
            let mut builder = tempfile::Builder::new();
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                builder.permissions(fs::Permissions::from_mode(0o700));
            }
            let folder = builder.prefix(PREFIX).tempdir_in(scratch)?;
            // On platforms without directory locks nothing is swept, so an unlocked directory is safe.
            let held = lock::open(folder.path()).and_then(|it| it.lock_shared().map(|()| it)).ok();
            if folder.path().is_dir() {
                return Ok(WorkingDirectory { folder, _held: held });
            }
        }
        Err(io::Error::other("another process removes it each time"))
    }
}

fn make_scratch(scratch: &Path) -> io::Result<()> {
    let mut folders = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders.recursive(true).create(scratch)?;
    // A directory with a manifest is a project root, so npm does not look for settings and packages above it.
    match File::create_new(scratch.join("package.json")) {
        Ok(mut manifest) => manifest.write_all(b"{ \"private\": true }\n"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes directories that killed hosts left in `scratch`, and returns how many. Skips directories in use, does not
/// follow links, and works only if no other user can write to `scratch`.
pub fn remove_abandoned_directories(scratch: &Path) -> usize {
    if !lock::is_private(scratch) {
        return 0;
    }
    let until = Instant::now() + SWEEP_TIMEOUT;
    let entries = fs::read_dir(scratch).into_iter().flatten().flatten();
    let ours = entries.filter(|it| {
        it.file_name().to_string_lossy().starts_with(PREFIX) && it.file_type().is_ok_and(|it| it.is_dir())
    });
    ours.take(MAX_SWEPT_DIRECTORIES)
        .take_while(|_| Instant::now() < until)
        .filter(|it| remove_if_unlocked(&it.path()))
        .count()
}

/// Holds the lock until the directory is removed, so that a host which has just created it notices.
fn remove_if_unlocked(folder: &Path) -> bool {
    let held = lock::open(folder).ok().filter(|it| it.try_lock().is_ok());
    held.is_some() && fs::remove_dir_all(folder).is_ok()
}

/// Opens directories as files that can be locked.
#[cfg(unix)]
mod lock {
    use rustix::{
        fs::{Mode, OFlags},
        process::geteuid,
    };
    use std::{fs::File, io, os::unix::fs::MetadataExt, path::Path};

    pub(super) fn open(folder: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::open(folder, flags, Mode::empty())?))
    }

    pub(super) fn is_private(folder: &Path) -> bool {
        folder
            .symlink_metadata()
            .is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw() && it.mode() & 0o022 == 0)
    }
}

#[cfg(not(unix))]
mod lock {
    use std::{fs::File, io, path::Path};

    pub(super) fn open(_folder: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_private(_folder: &Path) -> bool {
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn scratch() -> TempDir {
        let scratch = TempDir::new().expect("a folder");
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).expect("it is ours");
        scratch
    }

    #[test]
    fn only_unlocked_directories_are_removed() {
        let scratch = scratch();
        let used = WorkingDirectory::in_folder(scratch.path()).unwrap();
        let elsewhere = TempDir::new().unwrap();
        fs::write(elsewhere.path().join("kept"), "").unwrap();
        let left = scratch.path().join("wharf-left01");
        fs::create_dir_all(left.join("deep/down")).unwrap();
        symlink(elsewhere.path(), left.join("deep/link")).unwrap();
        symlink(elsewhere.path(), scratch.path().join("wharf-link01")).unwrap();
        fs::create_dir(scratch.path().join("other")).unwrap();
        fs::write(scratch.path().join("wharf-file01"), "").unwrap();

        assert_eq!(remove_abandoned_directories(scratch.path()), 1);
        assert!(used.path().is_dir() && !left.exists());
        assert!(elsewhere.path().join("kept").exists());
        assert!(["wharf-link01", "other", "wharf-file01"].iter().all(|it| scratch.path().join(it).exists()));

        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }

    #[test]
    fn scratch_writable_by_others_is_not_swept() {
        let scratch = scratch();
        fs::create_dir(scratch.path().join("wharf-left01")).unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(remove_abandoned_directories(scratch.path()), 0);
        assert_eq!(remove_abandoned_directories(&scratch.path().join("nowhere")), 0);
    }

    #[test]
    fn one_sweep_removes_a_bounded_number() {
        let scratch = scratch();
        for number in 0..MAX_SWEPT_DIRECTORIES + 1 {
            fs::create_dir(scratch.path().join(format!("wharf-{number:06}"))).unwrap();
        }
        assert!(remove_abandoned_directories(scratch.path()) <= MAX_SWEPT_DIRECTORIES);
        assert!(fs::read_dir(scratch.path()).unwrap().count() >= 1);
    }
}
