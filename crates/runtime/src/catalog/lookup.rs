//! Finds a tool by any of its names.

use super::ToolEntry;
use std::{collections::HashMap, sync::Arc};

/// Every name of every tool, and where the tool is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookup {
    /// `None` for a bare name that several sources have.
    names: HashMap<String, Option<usize>>,
}

impl Lookup {
    pub(super) fn new(tools: &[Arc<ToolEntry>]) -> Lookup {
        let mut names = HashMap::with_capacity(3 * tools.len());
        for (at, tool) in tools.iter().enumerate() {
            names.entry(tool.wire_name.clone()).and_modify(|it| *it = None).or_insert(Some(at));
        }
        // What is unique by its making goes before what happens to be.
        names.extend(tools.iter().enumerate().map(|(at, tool)| (tool.id(), Some(at))));
        names.extend(tools.iter().enumerate().map(|(at, tool)| (tool.name.clone(), Some(at))));
        Lookup { names }
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied().flatten()
    }
}
