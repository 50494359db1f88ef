//! Validates the arguments of a call against the tool's schema before they are sent.
//!
//! A schema comes from an untrusted server, and the server validates its arguments itself. So two rules hold for any
//! schema: arguments that the schema allows are never rejected, and validation takes at most [`STEP_BUDGET`] steps per
//! pass. Rare, unsupported or too expensive parts are skipped, and [`Check`] reports that; the call goes on. Only local
//! references are followed, and nothing is fetched.
//!
//! The dialect is the common part of draft-07 to 2020-12. `format` is only an annotation.

mod check;
mod compile;
mod equal;
mod messages;
mod node;
mod number;
mod pattern;
mod references;
#[cfg(test)]
mod tests;

use check::Validator;
use messages::ValuePath;
use node::{Id, SchemaNode, Validity};
use serde_json::Value;
use wharf_mcp::Raw;

/// Maximum number of steps in one pass over the arguments. There are at most two passes. A step is a keyword, a
/// comparison or a kilobyte of text, and takes well under a microsecond.
pub const STEP_BUDGET: u32 = 50_000;

/// A compiled schema of a tool's arguments.
#[derive(Debug)]
pub struct Schema {
    nodes: Vec<SchemaNode>,
}

/// Result of validating arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The arguments are valid.
    Valid,
    /// The arguments are invalid, for one to ten reasons.
    Invalid(Vec<ArgumentError>),
    /// No error was found, but the validation is incomplete for this reason.
    Skipped(&'static str),
}

/// One validation error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// Path of the value, such as `arguments.items[2].due_date`.
    pub path: String,
    /// JSON pointer of the value within the arguments, such as `/items/2/due_date`.
    pub pointer: String,
    /// Description of the error, such as `is missing`.
    pub message: String,
}

impl Schema {
    /// Compiles a schema. The error tells why the tool cannot be used.
    pub fn compile(raw: &Raw) -> Result<Schema, String> {
        compile::schema(raw).map(|nodes| Schema { nodes })
    }

    /// Validates arguments.
    pub fn check(&self, arguments: &Raw) -> Check {
        self.check_counted(arguments).0
    }

    /// Validates arguments and returns the number of steps, at most twice the [`STEP_BUDGET`].
    pub fn check_counted(&self, arguments: &Raw) -> (Check, u32) {
        let Ok(value) = arguments.decode::<Value>() else {
            return (
                Check::Skipped("the arguments are nested too deeply, or have a number that is too large"),
                0,
            );
        };
        let mut validator = Validator::fast(&self.nodes);
        let verdict = validator.node(Id::ROOT, &value, &ValuePath::ROOT);
        let check = match verdict {
            Validity::Valid | Validity::Annotated => Check::Valid,
            Validity::Unknown => Check::Skipped(validator.why()),
            Validity::Invalid => {
                let (wrong, steps) = self.explain(&value);
                return (Check::Invalid(wrong), validator.steps() + steps);
            }
        };
        (check, validator.steps())
    }

    /// Runs a second pass that collects errors. Only invalid arguments pay for it.
    fn explain(&self, value: &Value) -> (Vec<ArgumentError>, u32) {
        let mut validator = Validator::collecting(&self.nodes);
        validator.node(Id::ROOT, value, &ValuePath::ROOT);
        let steps = validator.steps();
        let mut wrong = validator.into_argument_error();
        if wrong.is_empty() {
            let message = "does not match the schema of the tool".to_owned();
            wrong.push(ArgumentError { path: ValuePath::ROOT.to_string(), pointer: String::new(), message });
        }
        (wrong, steps)
    }
}
