//! Computes the cost of copying a part of a document.

use crate::node::{Node, Value};

/// Size of a tree. Keys count like values.
#[derive(Clone, Copy, Default)]
pub(super) struct TreeSize {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    /// Nesting depth. A scalar has depth 0.
    pub(super) depth: usize,
}

impl TreeSize {
    pub(super) fn of(node: &Node) -> TreeSize {
        let mut pending = vec![(node, 0)];
        let mut tree_size = TreeSize::default();
        while let Some((node, above)) = pending.pop() {
            tree_size.nodes += 1;
            match &node.value {
                Value::Str(it) => tree_size.bytes += it.text.expose().len(),
                Value::Seq(items) => {
                    tree_size.depth = tree_size.depth.max(above + 1);
                    pending.extend(items.iter().map(|it| (it, above + 1)));
                }
                Value::Map(pairs) => {
                    tree_size.depth = tree_size.depth.max(above + 1);
                    tree_size.nodes += pairs.len();
                    tree_size.bytes += pairs.iter().map(|it| it.key.len()).sum::<usize>();
                    pending.extend(pairs.iter().map(|it| (&it.node, above + 1)));
                }
                _ => {}
            }
        }
        tree_size
    }
}
