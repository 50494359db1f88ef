//! The tools by which a caller reads stored results: their definitions, and what they do with a document.

use super::{
    Document, QueryProgram,
    preview::shorten,
    query::run_pointer,
    reading::{ReadRange, grep, read},
};
use crate::own_tool::{OWN_SOURCE, OwnTool};
use serde_json::{Value, json};

/// Default number of matches.
const DEFAULT_MATCHES: u64 = 50;
/// Maximum number of matches.
const MAX_MATCHES: u64 = 1000;
/// Maximum number of lines around a match.
const MAX_CONTEXT: u64 = 20;

/// Tool that reads stored results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultTool {
    /// `wharf__read_result`
    Read,
    /// `wharf__grep_result`
    Grep,
    /// `wharf__query_result`
    Query,
}

impl ResultTool {
    /// All tools, in the order in which they are listed.
    pub const ALL: [ResultTool; 3] = [ResultTool::Read, ResultTool::Grep, ResultTool::Query];

    /// Returns the shown name.
    pub fn name(self) -> &'static str {
        match self {
            ResultTool::Read => "wharf__read_result",
            ResultTool::Grep => "wharf__grep_result",
            ResultTool::Query => "wharf__query_result",
        }
    }

    /// Returns the name without the prefix.
    pub fn wire_name(self) -> &'static str {
        match self {
            ResultTool::Read => "read_result",
            ResultTool::Grep => "grep_result",
            ResultTool::Query => "query_result",
        }
    }

    /// Finds a tool by its shown name, or by `wharf:NAME`.
    pub fn find(name: &str) -> Option<ResultTool> {
        let rest = name.strip_prefix(OWN_SOURCE)?;
        let rest = rest.strip_prefix("__").or_else(|| rest.strip_prefix(':'))?;
        ResultTool::ALL.into_iter().find(|it| it.wire_name() == rest)
    }

    /// Returns the definition.
    pub fn definition(self) -> OwnTool {
        let id = json!({ "type": "string", "description": "Id of the result, such as r-3." });
        let (description, properties, required) = match self {
            ResultTool::Read => (
                "Reads part of a stored result: lines or bytes. Without a range, the first 200 lines.",
                json!({
                    "id": id,
                    "lines": { "type": "string", "description": "Range of lines, such as 1-200." },
                    "bytes": { "type": "string", "description": "Range of bytes, such as 0-8191." },
                }),
                json!(["id"]),
            ),
            ResultTool::Grep => (
                "Finds the lines of a stored result that match a regular expression.",
                json!({
                    "id": id,
                    "pattern": { "type": "string", "description": "Regular expression." },
                    "context": { "type": "integer", "minimum": 0, "maximum": MAX_CONTEXT,
                        "description": "Number of lines to show around a match; 0 by default." },
                    "max": { "type": "integer", "minimum": 1, "maximum": MAX_MATCHES,
                        "description": "Maximum number of matches; 50 by default." },
                }),
                json!(["id", "pattern"]),
            ),
            ResultTool::Query => (
                "Runs a jq expression over a stored result, such as `.items | length` or `.items[0].id`.",
                json!({ "id": id, "query": { "type": "string", "description": "jq expression." } }),
                json!(["id", "query"]),
            ),
        };
        let input_schema = json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false });
        OwnTool { name: self.name(), description, input_schema }
    }

    /// Runs the tool on a document. Returns at most about `limit` bytes. The error is for the caller.
    pub(crate) async fn run(
        self,
        document: &Document,
        arguments: &Value,
        query: Option<&QueryProgram>,
        limit: usize,
    ) -> Result<String, String> {
        let text = |key: &str| arguments[key].as_str().ok_or_else(|| format!("`{key}` is missing"));
        let number = |key: &str, usual: u64, max: u64| {
            let number = arguments[key].as_u64().unwrap_or(usual).min(max);
            usize::try_from(number).unwrap_or(usize::MAX)
        };
        match self {
            ResultTool::Read => Ok(read(&document.text, range(arguments)?, limit)),
            ResultTool::Grep => {
                let context = number("context", 0, MAX_CONTEXT);
                let max = number("max", DEFAULT_MATCHES, MAX_MATCHES).max(1);
                grep(&document.text, text("pattern")?, context, max, limit)
            }
            ResultTool::Query => match query {
                Some(program) => program.run(document, text("query")?, limit).await,
                None => run_pointer(document, text("query")?).map(|it| shorten(&it, limit)),
            },
        }
    }
}

fn range(arguments: &Value) -> Result<Option<ReadRange>, String> {
    let ends = |key: &str| match &arguments[key] {
        Value::Null => Ok(None),
        Value::String(text) => {
            let ends = ReadRange::parse_ends(text);
            ends.map(Some).ok_or_else(|| format!("`{key}` has to be a range such as 1-200"))
        }
        _ => Err(format!("`{key}` has to be a range such as 1-200")),
    };
    match (ends("lines")?, ends("bytes")?) {
        (Some(_), Some(_)) => Err("give either `lines` or `bytes`".to_owned()),
        (Some((first, last)), None) => Ok(Some(ReadRange::Lines(first, last))),
        (None, bytes) => Ok(bytes.map(|(first, last)| ReadRange::Bytes(first, last))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_by_their_names() {
        for tool in ResultTool::ALL {
            assert_eq!(ResultTool::find(tool.name()), Some(tool));
            assert_eq!(ResultTool::find(&format!("wharf:{}", tool.wire_name())), Some(tool));
        }
        for other in ["read_result", "wharf__", "wharf_read_result", "x__read_result"] {
            assert_eq!(ResultTool::find(other), None, "{other}");
        }
    }
}
