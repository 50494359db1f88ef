//! Computes the cost of copying a part of a document.

use crate::node::{Node, Value};

/// Size of a tree. Keys count like values.
#[derive(Clone, Copy, Default)]
pub(super) struct Weight {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    /// Nesting depth. A scalar has depth 0.
    pub(super) height: usize,
}

impl Weight {
    pub(super) fn of(node: &Node) -> Weight {
        let mut waiting = vec![(node, 0)];
        let mut weight = Weight::default();
        while let Some((node, above)) = waiting.pop() {
            weight.nodes += 1;
            match &node.value {
                Value::Str(it) => weight.bytes += it.text.expose().len(),
                Value::Seq(items) => {
                    weight.height = weight.height.max(above + 1);
                    waiting.extend(items.iter().map(|it| (it, above + 1)));
                }
                Value::Map(pairs) => {
                    weight.height = weight.height.max(above + 1);
                    weight.nodes += pairs.len();
                    weight.bytes += pairs.iter().map(|it| it.key.len()).sum::<usize>();
                    waiting.extend(pairs.iter().map(|it| (&it.node, above + 1)));
                }
                _ => {}
            }
        }
        weight
    }
}
