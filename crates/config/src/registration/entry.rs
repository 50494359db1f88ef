//! Builds an entry of `tools:` from the parts of a registration. Each part keeps its place in the registration.

use crate::{
    env::Env,
    files::{FileError, Files},
    node::{Node, Pair, Value},
    place::{Place, Placed},
};
use std::{path::PathBuf, sync::Arc};

/// An entry under construction.
pub(super) struct EntryBuilder {
    at: Place,
    pairs: Vec<Pair>,
}

impl EntryBuilder {
    /// Creates an entry with `type: mcp`.
    pub(super) fn new(at: Place) -> EntryBuilder {
        let mut entry = EntryBuilder { at, pairs: Vec::new() };
        entry.put("type", at, Value::plain("mcp"));
        entry
    }

    pub(super) fn put(&mut self, key: &str, at: Place, value: Value) {
        self.put_node(key, at, Node { value, at });
    }

    pub(super) fn put_node(&mut self, key: &str, key_at: Place, node: Node) {
        self.pairs.push(Pair { key: key.to_owned(), key_at, node });
    }

    /// Adds a mapping, unless it is empty.
    pub(super) fn put_map(&mut self, key: &str, at: Place, pairs: Vec<(Placed<String>, Node)>) {
        if !pairs.is_empty() {
            let pairs = pairs.into_iter();
            let pairs = pairs.map(|(key, node)| Pair { key: key.value, key_at: key.at, node });
            self.put(key, at, Value::Map(pairs.collect()));
        }
    }

    pub(super) fn finish(self) -> Node {
        Node { value: Value::Map(self.pairs), at: self.at }
    }
}

/// Returns the file access of a REST client: it can check which programs are on PATH, but cannot read any file.
pub(super) fn restricted(env: &Env) -> Arc<dyn Files + Send + Sync> {
    Arc::new(RestrictedFiles(env.files.clone()))
}

struct RestrictedFiles(Arc<dyn Files + Send + Sync>);

impl Files for RestrictedFiles {
    fn locate(&self, _path: &str) -> Result<PathBuf, FileError> {
        Err(FileError::Missing)
    }

    fn read(&self, _path: &str, _max_bytes: u64) -> Result<Vec<u8>, FileError> {
        Err(FileError::Missing)
    }

    fn is_on_path(&self, name: &str, path: &str) -> bool {
        self.0.is_on_path(name, path)
    }
}
