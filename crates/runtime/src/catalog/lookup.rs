//! Finds a tool by any of its names.

use super::ToolEntry;
use std::{collections::HashMap, sync::Arc};

/// Maps every name of every tool to the tool's index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookup {
    /// The index, or `None` for a bare name that several sources have.
    names: HashMap<String, Option<usize>>,
}

impl Lookup {
    pub(super) fn new(tools: &[Arc<ToolEntry>]) -> Lookup {
        let mut names = HashMap::with_capacity(3 * tools.len());
        for (at, tool) in tools.iter().enumerate() {
            for bare in [Some(&*tool.wire_name), tool.renamed.as_deref()].into_iter().flatten() {
                let other = |it: &mut Option<usize>| *it = it.filter(|it| *it == at);
                names.entry(bare.to_owned()).and_modify(other).or_insert(Some(at));
            }
        }
        // Ids and shown names are unique by construction, so they override bare names.
        names.extend(tools.iter().enumerate().map(|(at, tool)| (tool.id(), Some(at))));
        names.extend(tools.iter().enumerate().map(|(at, tool)| (tool.name.clone(), Some(at))));
        Lookup { names }
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied().flatten()
    }
}
