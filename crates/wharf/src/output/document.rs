//! Builds the JSON document of a failed command. It has the keys that its readers expect, and `error`.

use crate::cli::{Cli, Command};
use serde_json::{Value, json};

/// The shape of the document that a command prints with `--json`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JsonDocument {
    /// The command's own document on success; only `error` on failure.
    Plain,
    /// The result of a call.
    Call {
        /// The name of the tool, as typed.
        tool: &'static str,
    },
    /// A list under this key, and the servers it comes from.
    List(&'static str),
    /// `ok`, and a list under this key.
    Report(&'static str),
}

impl JsonDocument {
    /// Returns the document shape for a command.
    pub(crate) fn of(cli: &Cli) -> JsonDocument {
        match &cli.command {
            // Leaking is fine: a process runs only one command.
            Command::Call(args) => JsonDocument::Call { tool: args.tool.clone().leak() },
            Command::Tools(_) => JsonDocument::List("tools"),
            Command::Prompts { .. } => JsonDocument::List("prompts"),
            Command::Resources { .. } => JsonDocument::List("resources"),
            Command::Check { .. } => JsonDocument::Report("diagnostics"),
            Command::Doctor { .. } => JsonDocument::Report("sources"),
            _ => JsonDocument::Plain,
        }
    }

    /// Builds the document of a failed command.
    pub(super) fn failure(self, mut error: Value) -> Value {
        match self {
            JsonDocument::Plain => json!({ "error": error }),
            JsonDocument::List(key) => json!({ key: [], "sources": [], "error": error }),
            JsonDocument::Report(key) => json!({ "ok": false, key: [], "error": error }),
            JsonDocument::Call { tool } => {
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
