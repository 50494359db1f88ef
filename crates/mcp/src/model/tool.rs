//! A tool, as `tools/list` shows it.

use super::{Read, header_params::HeaderParams, lenient, required};
use crate::Raw;

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name on the wire.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The schema of its arguments: an object.
    pub input_schema: Raw,
    /// The schema of its structured result.
    pub output_schema: Option<Raw>,
    /// Hints about its behaviour, which nobody has to believe.
    pub annotations: Option<Raw>,
    /// Everything, as the server sent it.
    pub raw: Raw,
    header_params: Result<HeaderParams, String>,
}

impl Tool {
    /// The arguments that have to be repeated in `Mcp-Param-*` headers, as header suffix and value.
    pub fn header_params(&self, arguments: Option<&Raw>) -> Vec<(String, String)> {
        match (&self.header_params, arguments) {
            (Ok(params), Some(arguments)) => params.values(arguments),
            _ => Vec::new(),
        }
    }

    /// Why the tool must not be used over HTTP in the 2026-07-28 era, if its header annotations are invalid.
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
            return Err("`inputSchema` is no object".into());
        }
        Ok(Tool {
            name,
            title: lenient(raw, "title"),
            description: lenient(raw, "description"),
            header_params: HeaderParams::of(&input_schema),
            input_schema,
            output_schema: lenient::<Raw>(raw, "outputSchema").filter(Raw::is_object),
            annotations: lenient::<Raw>(raw, "annotations").filter(Raw::is_object),
            raw: raw.clone(),
        })
    }
}
