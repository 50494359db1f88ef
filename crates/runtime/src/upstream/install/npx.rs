//! npm's cache, as far as npx uses it: `_npx/HASH` holds one set of packages, and the hash is that of their names.
//!
//! npm writes `package.json` there when everything is unpacked. A folder with packages and without that file is the rest
//! of an install that was stopped; npm takes it for a finished one, and the package fails from then on. So a folder is
//! claimed by a locked file while we install into it. Where that file is found and nobody holds it, a host was killed, and
//! the folder is emptied first.

use crate::{
    config::{ChildEnv, Download, Launch},
    upstream::find_program,
};
use sha2::{Digest, Sha512};
use std::{
    fs::{self, File, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How long to wait before looking again whether another host has installed.
pub(super) const POLL: Duration = Duration::from_millis(200);

/// The file that claims a folder.
const CLAIM: &str = "wharf-install.lock";

/// npm's own lock, which it renews every second and takes for abandoned after a minute.
const NPM_LOCK: &str = "concurrency.lock";
const RENEWED: Duration = Duration::from_secs(2);
const ABANDONED: Duration = Duration::from_secs(60);

/// The longest `.npmrc` that is read.
const MAX_NPMRC_BYTES: u64 = 1 << 16;

/// Whether a folder may be installed into.
pub(super) enum Claim {
    Held(Claimed),
    /// Another host installs into it.
    Taken,
    /// There is nothing to do: another host has installed.
    Whole,
    /// The folder cannot be made or locked.
    Impossible,
}

/// A folder that nobody else installs into. Dropped without being released, it counts as left behind.
pub(super) struct Claimed {
    folder: PathBuf,
    _lock: File,
}

/// The folder of npm's cache that a launch runs its package from.
pub(crate) fn folder(launch: &Launch) -> Option<PathBuf> {
    let Some(Download::Npm { packages, .. }) = &launch.download else { return None };
    let mut packages: Vec<&str> = packages.iter().map(|it| it.expose()).collect();
    packages.sort_by_key(|it| it.to_lowercase());
    let hash = Sha512::digest(packages.join("\n"));
    let name: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Some(cache(&launch.env)?.join("_npx").join(name))
}

/// The file that npm writes when everything is unpacked.
pub(super) const FINISHED: &str = "package.json";

/// Whether everything is unpacked there.
pub(super) fn is_whole(folder: &Path) -> bool {
    folder.join(FINISHED).is_file() && folder.join("node_modules").is_dir() && !folder.join(CLAIM).exists()
}

/// Whether the package is installed globally, from where npx runs it without a download.
pub(super) fn is_global(package: &str, env: &ChildEnv) -> bool {
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

/// Claims a folder, and empties it if an install into it was stopped.
pub(super) fn claim(folder: &Path) -> Claim {
    let path = folder.join(CLAIM);
    let opened = fs::create_dir_all(folder)
        .and_then(|()| File::options().create(true).truncate(false).read(true).write(true).open(&path));
    let Ok(mut lock) = opened else { return Claim::Impossible };
    match lock.try_lock() {
        // It may have been given up between opening and locking.
        Ok(()) if !is_same(&lock, &path) => return Claim::Taken,
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Claim::Taken,
        Err(TryLockError::Error(_)) => return Claim::Impossible,
    }
    // Written by whoever installs, and gone when they are done.
    let was_begun = lock.metadata().is_ok_and(|it| it.len() > 0);
    let finished = !was_begun && folder.join(FINISHED).is_file();
    if !finished && (was_begun || is_abandoned(folder)) {
        empty(folder);
    }
    let begun = finished || lock.write_all(b"installing\n").is_ok();
    let claimed = Claimed { folder: folder.to_owned(), _lock: lock };
    match (finished, begun) {
        (true, _) => {
            claimed.release();
            Claim::Whole
        }
        (false, true) => Claim::Held(claimed),
        (false, false) => Claim::Impossible,
    }
}

/// Whether the file is still the one at this path.
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

/// Removes the folder if an install into it has not come to its end. Only the claim's holder may ask for it.
pub(super) fn remove_unless_whole(folder: &Path) {
    if !folder.join(FINISHED).is_file() {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Whether npm has begun to install or to replace packages here, and has not finished.
pub(super) fn is_torn(folder: &Path) -> bool {
    let packages = folder.join("node_modules");
    let unfinished = packages.is_dir() && !folder.join(FINISHED).is_file();
    !folder.join(CLAIM).exists() && (unfinished || has_retired(&packages))
}

/// Removes the folder if it is torn and no npm is at work in it; says whether it did.
pub(super) fn remove_if_torn(folder: &Path) -> bool {
    let lock = folder.join(NPM_LOCK);
    let in_use = lock.exists() && !is_older(&lock, RENEWED);
    is_torn(folder) && !in_use && fs::remove_dir_all(folder).is_ok()
}

fn is_older(path: &Path, than: Duration) -> bool {
    let changed = path.metadata().and_then(|it| it.modified());
    let age = changed.ok().and_then(|it| SystemTime::now().duration_since(it).ok());
    age.is_some_and(|it| it > than)
}

/// npm moves a package that it replaces to `.NAME-XXXXXXXX` beside it, and removes that at the end.
fn has_retired(packages: &Path) -> bool {
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

/// Whether packages were unpacked here by an npm that is gone, and that did not finish.
fn is_abandoned(folder: &Path) -> bool {
    let is_old = |name: &str| is_older(&folder.join(name), ABANDONED);
    let locked = folder.join(NPM_LOCK).exists() && !is_old(NPM_LOCK);
    !folder.join(FINISHED).is_file() && is_old("node_modules") && !locked
}

/// Removes what an install writes; not the claim.
fn empty(folder: &Path) {
    for name in ["node_modules", NPM_LOCK] {
        let _ = fs::remove_dir_all(folder.join(name));
    }
    for name in [FINISHED, "package-lock.json"] {
        let _ = fs::remove_file(folder.join(name));
    }
}

impl Claimed {
    /// Nothing is left to be done there.
    pub(super) fn release(self) {
        let _ = fs::remove_file(self.folder.join(CLAIM));
        // Only an empty one goes.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn cache(env: &ChildEnv) -> Option<PathBuf> {
    setting(env, "cache").or_else(|| Some(Path::new(variable(env, "HOME")?).join(".npm")))
}

/// A path among npm's settings: from the environment, else from the user's `.npmrc`.
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

/// The last line that sets a key.
fn in_npmrc(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    let mut values = lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    values.next_back().map(|it| it.trim_matches(['"', '\'']).to_owned())
}

/// `~/x` and `${HOME}/x`.
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
