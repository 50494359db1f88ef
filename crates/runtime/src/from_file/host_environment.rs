//! Reads the environment of the process for [`Runtime::from_file`](crate::Runtime::from_file).
//!
//! Outside the program itself, this is the only module that reads the process environment, the current directory or
//! the home directory, and only `from_file` calls it. Callers with other needs build an [`Env`] and start the plan
//! themselves.

#![expect(
    clippy::disallowed_methods,
    reason = "`Runtime::from_file` promises the environment of the process"
)]

use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use wharf_config::find_program;
use wharf_config::{Env, Folder, Grants};

/// Builds the environment for an agent file at this path. Omits variables that are not valid Unicode.
pub(crate) fn env_for(file: &Path, grants: Grants) -> io::Result<Env> {
    let absolute = env::current_dir()?.join(file);
    let folder = absolute.parent().map_or_else(|| absolute.clone(), Path::to_owned);
    let folder = folder.canonicalize().unwrap_or(folder);
    Ok(Env {
        file: file.display().to_string(),
        files: Arc::new(Folder::new(&folder)),
        folder,
        home: home(),
        variables: variables(),
        grants,
        ..Env::bare()
    })
}

/// Returns the parent of the private working directories. It is in the user's own cache, because package managers
/// search parent directories for packages and must not find files of other users in a shared directory.
pub(crate) fn scratch() -> PathBuf {
    let variables = variables();
    let named = |name: &str| variables.get(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let usual = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let cache = named("XDG_CACHE_HOME").or_else(|| home().map(|it| it.join(usual)));
    cache.unwrap_or_else(env::temp_dir).join("wharf-runtime")
}

/// Finds the program `wharf` on PATH.
pub(crate) fn wharf_program() -> Option<PathBuf> {
    find_program("wharf", variables().get("PATH")?)
}

/// Returns the variables of this process.
pub(crate) fn variables() -> BTreeMap<String, String> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn home() -> Option<PathBuf> {
    env::home_dir().filter(|it| it.is_absolute())
}
