//! Inspects and repairs npm's cache as npx uses it: `_npx/HASH` contains one set of packages, where the hash is of
//! their names.
//!
//! npm writes `package.json` there after it has unpacked everything. A folder with packages but without that file is
//! left over from an interrupted install. npm takes it for a complete one, and the package fails from then on. A
//! locked claim file therefore marks a folder during our install. A claim file without a lock means that the host was
//! killed, and the folder is emptied first.

use sha2::{Digest, Sha512};
use std::{
    fs::{self, File, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use wharf_config::find_program;
use wharf_config::{ChildEnv, Download, Launch};

/// Interval for checking whether another host has finished its install.
pub(crate) const CLAIM_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Name of the claim file.
const CLAIM_FILE: &str = "wharf-install.lock";

/// npm's own lock, which npm renews every second and considers abandoned after a minute.
const NPM_LOCK: &str = "concurrency.lock";
const NPM_LOCK_MAX_AGE: Duration = Duration::from_secs(2);
const NPM_ABANDONED_AGE: Duration = Duration::from_secs(60);

/// Maximum size of an `.npmrc`, in bytes.
const MAX_NPMRC_BYTES: u64 = 1 << 16;

/// Result of claiming a folder.
pub(crate) enum Claim {
    Held(ClaimedFolder),
    /// Another host is installing into it.
    Taken,
    /// Another host has completed the install.
    Complete,
    /// The folder cannot be created or locked.
    Impossible,
}

/// A claimed folder. If it is dropped without release, the install counts as interrupted.
pub(crate) struct ClaimedFolder {
    folder: PathBuf,
    _lock: File,
}

/// Returns the folder of npm's cache from which a launch runs its package.
pub(crate) fn folder(launch: &Launch) -> Option<PathBuf> {
    let Some(Download::Npm { packages, .. }) = &launch.download else { return None };
    let mut packages: Vec<&str> = packages.iter().map(|it| it.expose()).collect();
    packages.sort_by_key(|it| it.to_lowercase());
    let hash = Sha512::digest(packages.join("\n"));
    let name: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(cache(&launch.env)?.join("_npx").join(name))
}

/// The file that npm writes after it has unpacked everything.
pub(crate) const COMPLETION_FILE: &str = "package.json";

/// Returns whether the install in this folder is complete.
pub(crate) fn is_complete(folder: &Path) -> bool {
    folder.join(COMPLETION_FILE).is_file()
        && folder.join("node_modules").is_dir()
        && !folder.join(CLAIM_FILE).exists()
}

/// Returns whether the package is installed globally, from where npx runs it without a download.
pub(crate) fn is_global(package: &str, env: &ChildEnv) -> bool {
    let name = match package.char_indices().skip(1).find(|(_, c)| *c == '@') {
        Some((at, _)) => &package[..at],
        None => package,
    };
    let beside_node = || {
        let node = find_program("node", variable(env, "PATH")?)?.canonicalize().ok()?;
        Some(node.parent()?.parent()?.to_owned())
    };
    let prefix = setting(env, "prefix").or_else(beside_node);
    prefix.is_some_and(|it| it.join("lib/node_modules").join(name).join("package.json").is_file())
}

/// Claims a folder, and empties it if it contains an interrupted install.
pub(crate) fn claim(folder: &Path) -> Claim {
    let path = folder.join(CLAIM_FILE);
    let opened = fs::create_dir_all(folder)
        .and_then(|()| File::options().create(true).truncate(false).read(true).write(true).open(&path));
    let Ok(mut lock) = opened else { return Claim::Impossible };
    match lock.try_lock() {
        // The file may have been released and deleted between opening and locking.
        Ok(()) if !is_same(&lock, &path) => return Claim::Taken,
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Claim::Taken,
        Err(TryLockError::Error(_)) => return Claim::Impossible,
    }
    // The installing host writes to the file and deletes it at the end.
    let was_begun = lock.metadata().is_ok_and(|it| it.len() > 0);
    let finished = !was_begun && folder.join(COMPLETION_FILE).is_file();
    if !finished && (was_begun || is_abandoned(folder)) {
        empty_folder(folder);
    }
    let begun = finished || lock.write_all(b"installing\n").is_ok();
    let claimed = ClaimedFolder { folder: folder.to_owned(), _lock: lock };
    match (finished, begun) {
        (true, _) => {
            claimed.release();
            Claim::Complete
        }
        (false, true) => Claim::Held(claimed),
        (false, false) => Claim::Impossible,
    }
}

/// Returns whether `path` still refers to this open file.
fn is_same(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (ours, there) = (file.metadata(), path.metadata());
        ours.is_ok_and(|ours| there.is_ok_and(|there| (ours.dev(), ours.ino()) == (there.dev(), there.ino())))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Removes the folder if its install is incomplete. Must not run while another host holds the claim.
pub(crate) fn remove_if_incomplete(folder: &Path) {
    if !folder.join(COMPLETION_FILE).is_file() {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Returns whether npm has started to install or replace packages here and has not finished.
pub(crate) fn is_interrupted(folder: &Path) -> bool {
    let packages = folder.join("node_modules");
    let unfinished = packages.is_dir() && !folder.join(COMPLETION_FILE).is_file();
    !folder.join(CLAIM_FILE).exists() && (unfinished || has_unfinished_update(&packages))
}

/// Removes the folder if its install was interrupted and no npm is using it. Returns whether it did.
pub(crate) fn remove_if_interrupted(folder: &Path) -> bool {
    let lock = folder.join(NPM_LOCK);
    let in_use = lock.exists() && !is_older(&lock, NPM_LOCK_MAX_AGE);
    is_interrupted(folder) && !in_use && fs::remove_dir_all(folder).is_ok()
}

fn is_older(path: &Path, than: Duration) -> bool {
    let changed = path.metadata().and_then(|it| it.modified());
    let age = changed.ok().and_then(|it| SystemTime::now().duration_since(it).ok());
    age.is_some_and(|it| it > than)
}

/// Returns whether npm has an unfinished update: it moves a package it replaces to `.NAME-XXXXXXXX` and removes that
/// at the end.
fn has_unfinished_update(packages: &Path) -> bool {
    let is_retired = |name: &str| {
        let hash = name.strip_prefix('.').and_then(|it| it.rsplit_once('-')).map(|(_, hash)| hash);
        hash.is_some_and(|it| it.len() == 8 && it.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    };
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let top = names(packages);
    let scopes = top.iter().filter(|it| it.starts_with('@')).flat_map(|it| names(&packages.join(it)));
    top.iter().cloned().chain(scopes).any(|it| is_retired(&it))
}

/// Returns whether an npm that no longer runs left an incomplete install here.
fn is_abandoned(folder: &Path) -> bool {
    let is_old = |name: &str| is_older(&folder.join(name), NPM_ABANDONED_AGE);
    let locked = folder.join(NPM_LOCK).exists() && !is_old(NPM_LOCK);
    !folder.join(COMPLETION_FILE).is_file() && is_old("node_modules") && !locked
}

/// Removes the files of an install, but not the claim.
fn empty_folder(folder: &Path) {
    for name in ["node_modules", NPM_LOCK] {
        let _ = fs::remove_dir_all(folder.join(name));
    }
    for name in [COMPLETION_FILE, "package-lock.json"] {
        let _ = fs::remove_file(folder.join(name));
    }
}

impl ClaimedFolder {
    /// Releases the claim after the install is done.
    pub(crate) fn release(self) {
        let _ = fs::remove_file(self.folder.join(CLAIM_FILE));
        // Removes the folder only if it is empty.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn cache(env: &ChildEnv) -> Option<PathBuf> {
    setting(env, "cache").or_else(|| Some(Path::new(variable(env, "HOME")?).join(".npm")))
}

/// Reads a path from npm's settings: from the environment, otherwise from the user's `.npmrc`.
fn setting(env: &ChildEnv, name: &str) -> Option<PathBuf> {
    let named = from_environment(env, name).map(str::to_owned).or_else(|| {
        let home = || Some(Path::new(variable(env, "HOME")?).join(".npmrc"));
        let file = from_environment(env, "userconfig").map(PathBuf::from).or_else(home)?;
        let mut text = String::new();
        File::open(file).ok()?.take(MAX_NPMRC_BYTES).read_to_string(&mut text).ok()?;
        in_npmrc(&text, name)
    })?;
    expanded(&named, env).filter(|it| it.is_absolute())
}

fn from_environment<'a>(env: &'a ChildEnv, name: &str) -> Option<&'a str> {
    let name = format!("npm_config_{name}");
    let found = env.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(&name));
    found.map(|(_, it)| it.value.expose()).filter(|it| !it.is_empty())
}

/// Returns the value of the last line that sets a key.
fn in_npmrc(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut values = lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    values.next_back().map(|it| it.trim_matches(['"', '\'']).to_owned())
}

/// Expands `~/x` and `${HOME}/x`.
fn expanded(path: &str, env: &ChildEnv) -> Option<PathBuf> {
    let home = || variable(env, "HOME");
    if let Some(rest) = path.strip_prefix("~/").or_else(|| path.strip_prefix("${HOME}/")) {
        return Some(Path::new(home()?).join(rest));
    }
    (!path.contains("${")).then(|| PathBuf::from(path))
}

fn variable<'a>(env: &'a ChildEnv, name: &str) -> Option<&'a str> {
    env.0.get(name).map(|it| it.value.expose()).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests;
