//! A folder of plugins for tests.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use wharf_config::{Env, Folder, Grants};

/// A root directory for plugins, as an operator would configure it.
pub(crate) struct Plugins {
    root: tempfile::TempDir,
}

impl Plugins {
    pub(crate) fn new() -> Plugins {
        Plugins { root: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("it is there")
    }

    pub(crate) fn env(&self) -> Env {
        Env {
            files: Arc::new(Folder::new(self.root())),
            grants: Grants {
                processes_over_rest: true,
                plugin_roots: vec![self.root()],
                ..Grants::default()
            },
            variables: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            ..Env::bare()
        }
    }

    /// Writes a file of a plugin that no other user can write to. Returns the plugin's folder.
    pub(crate) fn write(&self, plugin: &str, file: &str, text: &str) -> PathBuf {
        let folder = self.root().join(plugin);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(file), text).expect("a file");
        set_mode(&folder, 0o755);
        set_mode(&folder.join(file), 0o644);
        folder
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}
