//! An entry of `tools:` that nobody wrote: made of the parts of a registration, each where it was written.

use crate::config::{
    env::Env,
    files::{FileTrouble, Files},
    node::{Node, Pair, Value},
    place::{Place, Placed},
};
use std::{path::PathBuf, sync::Arc};

/// An entry while it is put together.
pub(super) struct Entry {
    at: Place,
    pairs: Vec<Pair>,
}

impl Entry {
    /// One of an MCP server, as all are.
    pub(super) fn new(at: Place) -> Entry {
        let mut entry = Entry { at, pairs: Vec::new() };
        entry.put("type", at, Value::plain("mcp"));
        entry
    }

    pub(super) fn put(&mut self, key: &str, at: Place, value: Value) {
        self.put_node(key, at, Node { value, at });
    }

    pub(super) fn put_node(&mut self, key: &str, key_at: Place, node: Node) {
        self.pairs.push(Pair { key: key.to_owned(), key_at, node });
    }

    /// A mapping, unless there is nothing in it.
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

/// What somebody far away may know of our files: which programs there are, and nothing else.
pub(super) fn afar(env: &Env) -> Arc<dyn Files + Send + Sync> {
    Arc::new(Afar(env.files.clone()))
}

struct Afar(Arc<dyn Files + Send + Sync>);

impl Files for Afar {
    fn locate(&self, _path: &str) -> Result<PathBuf, FileTrouble> {
        Err(FileTrouble::Missing)
    }

    fn read(&self, _path: &str, _most: u64) -> Result<Vec<u8>, FileTrouble> {
        Err(FileTrouble::Missing)
    }

    fn is_on_path(&self, name: &str, path: &str) -> bool {
        self.0.is_on_path(name, path)
    }
}
