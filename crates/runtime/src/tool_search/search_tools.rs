//! The two tools by which a model reaches tools that it is not offered: one finds them, the other calls them.

use crate::own_tool::OwnTool;
use serde_json::{Value, json};
use wharf_mcp::Raw;

/// Name of the tool that finds tools.
pub const FIND_TOOLS: &str = "wharf__find_tools";
/// Name of the tool that calls a tool that was found.
pub const CALL_TOOL: &str = "wharf__call_tool";
/// Number of tools that are found if nothing else is asked for.
const DEFAULT_LIMIT: u64 = 5;
/// Maximum number of tools that are found.
const MAX_LIMIT: u64 = 20;

/// Returns the definition of the tool that finds tools.
pub fn find_tools() -> OwnTool {
    OwnTool {
        name: FIND_TOOLS,
        description: "Finds tools that are not listed, by what they do. Returns names, descriptions and input schemas. Call \
            a tool that you found with wharf__call_tool.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "What the tool should do, in a few words." },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "Number of tools; 5 by default." },
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
    }
}

/// Returns the definition of the tool that calls tools.
pub fn call_tool() -> OwnTool {
    OwnTool {
        name: CALL_TOOL,
        description: "Calls a tool by its name, also one that is not listed.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "Name of the tool, as wharf__find_tools returned it." },
                "arguments": { "type": "object", "description": "Arguments of the tool, which fit its input schema." },
            },
            "required": ["name"],
            "additionalProperties": false,
        }),
    }
}

/// Arguments of the tool that finds tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolQuery {
    /// The question, in a few words.
    pub query: String,
    /// Maximum number of tools.
    pub limit: usize,
}

impl ToolQuery {
    /// Reads the arguments. The error is for the caller.
    pub fn read(arguments: &Value) -> Result<ToolQuery, String> {
        let query = arguments["query"].as_str().filter(|it| !it.trim().is_empty());
        let query = query.ok_or_else(|| "`query` is missing".to_owned())?.to_owned();
        let limit = arguments["limit"].as_u64().unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        Ok(ToolQuery { query, limit: usize::try_from(limit).unwrap_or(usize::MAX) })
    }
}

/// The call that a call of [`CALL_TOOL`] stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerCall {
    /// Name of the tool.
    pub name: String,
    /// Its arguments, as the caller wrote them.
    pub arguments: Raw,
}

impl InnerCall {
    /// Reads the arguments. The error is for the caller.
    pub fn read(arguments: &Raw) -> Result<InnerCall, String> {
        let [name, inner] = arguments.pick(["name", "arguments"]);
        let name =
            name.and_then(|it| it.decode::<String>().ok()).ok_or_else(|| "`name` is missing".to_owned())?;
        let arguments = inner.unwrap_or_else(Raw::empty_object);
        if !arguments.is_object() {
            return Err("`arguments` is not an object".to_owned());
        }
        Ok(InnerCall { name, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_checked() {
        let inner = |text: &str| InnerCall::read(&Raw::parse(text.to_owned()).expect("JSON"));
        let call = inner(r#"{"name":"a__b","arguments":{"n":1.50}}"#).expect("a call");
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("a__b", r#"{"n":1.50}"#));
        assert_eq!(inner(r#"{"name":"a"}"#).map(|it| it.arguments.as_str().to_owned()), Ok("{}".to_owned()));
        assert_eq!(inner("{}"), Err("`name` is missing".to_owned()));
        assert_eq!(inner(r#"{"name":"a","arguments":[]}"#), Err("`arguments` is not an object".to_owned()));
        let query = |value: Value| ToolQuery::read(&value).map(|it| it.limit);
        assert_eq!(query(json!({ "query": "x" })), Ok(5));
        assert_eq!(query(json!({ "query": "x", "limit": 99 })), Ok(20));
        assert!(query(json!({ "query": " " })).is_err());
    }
}
