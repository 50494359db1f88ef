//! Checks the arguments of a call against the schema of its tool, before they are sent.
//!
//! A schema comes from a server that nobody has to trust, and the server checks its arguments itself. So two things hold
//! whatever is written there: what the schema allows is never refused, and no schema costs more than [`BUDGET`] steps.
//! What is not known here, or takes too long, passes, and the [`Check`] says that it was skipped. Nothing is fetched:
//! a schema that refers to another document does not compile.
//!
//! The dialect is JSON Schema 2020-12 with the spellings of draft-07; `format` is a remark and nothing else.

mod check;
mod compile;
mod locate;
mod node;
mod number;
mod pattern;
mod same;
mod say;
#[cfg(test)]
mod tests;

use check::Run;
use node::{Id, Node, Verdict};
use say::Path;
use serde_json::Value;
use wharf_mcp::Raw;

/// How many steps one pass over the arguments may take; there are at most two. A step is a keyword, a comparison, or a
/// kilobyte of text, and takes well under a microsecond.
pub const BUDGET: u32 = 50_000;

/// The schema of a tool's arguments, ready to be checked against.
#[derive(Debug)]
pub struct Schema {
    nodes: Vec<Node>,
}

/// What is known about some arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// They fit.
    Fine,
    /// They do not, for these reasons: at least one, and at most ten.
    Wrong(Vec<Wrong>),
    /// Nothing speaks against them, but not everything was checked, for this reason.
    Skipped(&'static str),
}

/// One thing that is wrong with arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Where: `arguments.items[2].due_date`.
    pub path: String,
    /// What: `is missing`.
    pub message: String,
}

impl Schema {
    /// Reads a schema. The error says why its tool cannot be used.
    pub fn compile(raw: &Raw) -> Result<Schema, String> {
        compile::schema(raw).map(|nodes| Schema { nodes })
    }

    /// Checks arguments.
    pub fn check(&self, arguments: &Raw) -> Check {
        self.check_counted(arguments).0
    }

    /// Checks arguments, and says how many steps it took: at most twice the [`BUDGET`].
    pub fn check_counted(&self, arguments: &Raw) -> (Check, u32) {
        let Ok(value) = arguments.decode::<Value>() else {
            return (
                Check::Skipped("the arguments are nested too deeply, or have a number that is too large"),
                0,
            );
        };
        let mut run = Run::quiet(&self.nodes);
        let verdict = run.node(Id::ROOT, &value, &Path::ROOT);
        let check = match verdict {
            Verdict::Valid | Verdict::Noted => Check::Fine,
            Verdict::Unknown => Check::Skipped(run.why()),
            Verdict::Invalid => {
                let (wrong, steps) = self.explain(&value);
                return (Check::Wrong(wrong), run.steps() + steps);
            }
        };
        (check, run.steps())
    }

    /// Goes through them a second time, now with an ear for what is wrong: only those who erred pay for it.
    fn explain(&self, value: &Value) -> (Vec<Wrong>, u32) {
        let mut run = Run::loud(&self.nodes);
        run.node(Id::ROOT, value, &Path::ROOT);
        let steps = run.steps();
        let mut wrong = run.into_wrong();
        if wrong.is_empty() {
            let message = "does not fit the schema of the tool".to_owned();
            wrong.push(Wrong { path: Path::ROOT.to_string(), message });
        }
        (wrong, steps)
    }
}
