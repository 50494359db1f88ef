//! The JSON document of a command that failed: it has the keys that its readers look for, and `error`.

use crate::cli::{Cli, Command};
use serde_json::{Value, json};

/// Which document a command prints under `--json`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Document {
    /// Its own when it succeeds, and nothing but `error` when it does not.
    Plain,
    /// The result of a call.
    Call {
        /// The tool, as it was typed.
        tool: &'static str,
    },
    /// A list under this key, and the servers it is from.
    List(&'static str),
    /// Whether all is well, and a list under this key.
    Report(&'static str),
}

impl Document {
    /// The document of what was typed.
    pub(crate) fn of(cli: &Cli) -> Document {
        match &cli.command {
            // There is one command in the life of the program.
            Command::Call(args) => Document::Call { tool: args.tool.clone().leak() },
            Command::Tools(_) => Document::List("tools"),
            Command::Prompts { .. } => Document::List("prompts"),
            Command::Resources { .. } => Document::List("resources"),
            Command::Check { .. } => Document::Report("diagnostics"),
            Command::Doctor { .. } => Document::Report("sources"),
            _ => Document::Plain,
        }
    }

    /// The document of a command that failed.
    pub(super) fn failed(self, mut error: Value) -> Value {
        match self {
            Document::Plain => json!({ "error": error }),
            Document::List(key) => json!({ key: [], "sources": [], "error": error }),
            Document::Report(key) => json!({ "ok": false, key: [], "error": error }),
            Document::Call { tool } => {
                if let Some(error) = error.as_object_mut() {
                    error.entry("phase").or_insert_with(|| json!("check"));
                    error.entry("sent").or_insert_with(|| json!("no"));
                }
                let metadata = json!({
                    "request_id": null,
                    "tool": tool,
                    "wire_name": null,
                    "source": null,
                    "duration_ms": null,
                    "structured_content": null,
                });
                json!({ "success": false, "content": [], "error": error, "metadata": metadata })
            }
        }
    }
}
