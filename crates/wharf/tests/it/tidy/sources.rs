//! The modules of each crate, from the files of its `src` folder, without tests.

use std::collections::BTreeMap;

use super::tokens::{Token, without_tests};
use super::tree::Tree;

/// The files of one crate.
pub(super) struct CrateSources {
    pub(super) name: String,
    pub(super) files: Vec<SourceFile>,
}

pub(super) struct SourceFile {
    pub(super) path: String,
    /// Path of the module below the crate root. Empty for the root.
    pub(super) module: Vec<String>,
    pub(super) text: String,
}

impl SourceFile {
    /// Returns the tokens outside of tests.
    pub(super) fn tokens(&self) -> Vec<Token<'_>> {
        without_tests(&self.text).0
    }

    /// Returns the top-level module that the file belongs to, or the name of the root.
    pub(super) fn top_module(&self) -> &str {
        self.module.first().map_or(ROOT, String::as_str)
    }
}

/// Name of the crate root among the top-level modules.
pub(super) const ROOT: &str = "crate root";

/// Returns the crates below `crates`.
pub(super) fn crates(tree: &Tree) -> Vec<CrateSources> {
    let mut all: BTreeMap<String, Vec<SourceFile>> = BTreeMap::new();
    for (path, text) in tree.sources() {
        let Some((name, file)) = path.strip_prefix("crates/").and_then(|it| it.split_once("/src/")) else {
            continue;
        };
        let file = SourceFile { path: path.to_owned(), module: module_path(file), text };
        all.entry(name.to_owned()).or_default().push(file);
    }
    let crates = all.into_iter().map(|(name, files)| CrateSources { name, files: drop_tests(files) });
    crates.collect()
}

fn module_path(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    if path == "lib" || path == "main" {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// Drops the files of modules that are declared for tests only.
fn drop_tests(files: Vec<SourceFile>) -> Vec<SourceFile> {
    let of_tests = |file: &SourceFile| {
        let (_, names) = without_tests(&file.text);
        names.into_iter().map(|it| [&file.module[..], &[it.to_owned()]].concat()).collect::<Vec<_>>()
    };
    let tests: Vec<Vec<String>> = files.iter().flat_map(of_tests).collect();
    files.into_iter().filter(|file| !tests.iter().any(|it| file.module.starts_with(it))).collect()
}
