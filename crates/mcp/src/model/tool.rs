//! Tool as listed by `tools/list`.

use super::{Read, header_params::HeaderParams, lenient, required};
use crate::{Raw, tasks::TaskSupport};

/// Tool as listed by `tools/list`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Name on the wire.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// JSON Schema of its arguments; always an object.
    pub input_schema: Raw,
    /// JSON Schema of its structured result.
    pub output_schema: Option<Raw>,
    /// Untrusted hints about its behaviour.
    pub annotations: Option<Raw>,
    /// Whether it can be called as a task of 2025-11-25.
    pub task_support: TaskSupport,
    /// Whole tool, as the server sent it.
    pub raw: Raw,
    header_params: Result<HeaderParams, String>,
}

impl Tool {
    /// Returns the arguments to repeat in `Mcp-Param-*` headers, as header suffix and value.
    pub fn header_params(&self, arguments: Option<&Raw>) -> Vec<(String, String)> {
        match (&self.header_params, arguments) {
            (Ok(params), Some(arguments)) => params.values(arguments),
            _ => Vec::new(),
        }
    }

    /// Returns why the tool must not be used over HTTP in the 2026-07-28 era, if its header annotations are invalid.
    pub fn header_flaw(&self) -> Option<&str> {
        self.header_params.as_ref().err().map(String::as_str)
    }
}

impl Read for Tool {
    fn read(raw: &Raw) -> Result<Tool, String> {
        let name: String = required(raw, "name")?;
        if name.is_empty() {
            return Err("`name` is empty".into());
        }
        let input_schema: Raw = required(raw, "inputSchema")?;
        if !input_schema.is_object() {
            return Err("`inputSchema` is not an object".into());
        }
        Ok(Tool {
            name,
            title: lenient(raw, "title"),
            description: lenient(raw, "description"),
            header_params: HeaderParams::of(&input_schema),
            input_schema,
            output_schema: lenient::<Raw>(raw, "outputSchema").filter(Raw::is_object),
            annotations: lenient::<Raw>(raw, "annotations").filter(Raw::is_object),
            task_support: TaskSupport::of(raw),
            raw: raw.clone(),
        })
    }
}
