//! The files of the repository: all that git tracks or would track, or all files if there is no git, as in a source
//! archive. Paths are relative to the root, with `/`, and sorted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) struct Tree {
    root: PathBuf,
    paths: Vec<String>,
}

/// Folders of builds, package managers and fuzzers.
const NOT_OURS: [&str; 5] = [".git", "target", "node_modules", "artifacts", "corpus"];

impl Tree {
    pub(super) fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().expect("the crate lies two folders below the root");
        let mut paths = from_git(&root).unwrap_or_else(|| from_folders(&root));
        // Git still lists a deleted file until the deletion is committed.
        paths.retain(|path| root.join(path).is_file());
        paths.sort();
        paths.dedup();
        Self { root, paths }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Returns our Rust files with their text.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&str, String)> {
        let ours = |path: &&str| {
            let folder = path.split('/').next().unwrap_or_default();
            path.ends_with(".rs")
                && ["crates", "conformance", "hostile", "load", "xtask", "fuzz"].contains(&folder)
        };
        self.paths().filter(ours).map(|path| (path, self.text(path)))
    }

    /// Returns the text of a file. Replaces invalid UTF-8, because the rules are about what people read.
    pub(super) fn text(&self, path: &str) -> String {
        String::from_utf8_lossy(&self.bytes(path)).into_owned()
    }

    /// Returns the contents of a file. A missing file is empty.
    pub(super) fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.root.join(path)).unwrap_or_default()
    }
}

/// Lists the files with git. Returns `None` unless the root is a checkout: an archive unpacked inside another
/// repository does not belong to that repository.
fn from_git(root: &Path) -> Option<Vec<String>> {
    root.join(".git").exists().then_some(())?;
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let paths = listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned);
    output.status.success().then(|| paths.collect())
}

fn from_folders(root: &Path) -> Vec<String> {
    let mut folders = vec![String::new()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && NOT_OURS.contains(&name.as_str()) => {}
                Ok(kind) if kind.is_dir() => folders.push(path),
                _ => paths.push(path),
            }
        }
    }
    paths
}

#[test]
fn git_and_folder_listing_find_this_file() {
    let tree = Tree::read();
    let this = "crates/wharf/tests/it/tidy/tree.rs";
    assert!(tree.paths().any(|path| path == this));
    assert!(from_folders(tree.root()).iter().any(|path| path == this));
    assert!(!from_folders(tree.root()).iter().any(|path| path.starts_with(".git/")));
}
