//! Builds the tool definitions from two JSON files: the tools, and the schemas of their results.

use serde_json::{Map, Value};

const TOOLS: &str = include_str!("tools.json");
const RESULTS: &str = include_str!("results.json");

/// Returns the tools for `tools/list`.
pub(super) fn tools() -> Vec<Value> {
    let results: Map<String, Value> = serde_json::from_str(RESULTS).unwrap_or_default();
    let mut tools: Vec<Value> = serde_json::from_str(TOOLS).unwrap_or_default();
    tools.iter_mut().for_each(|tool| inline_schema(&mut tool["outputSchema"], &results));
    tools
}

/// Replaces the name of a schema with the schema itself, because not every client follows references.
fn inline_schema(place: &mut Value, results: &Map<String, Value>) {
    if let Some(schema) = place.as_str().and_then(|name| results.get(name)) {
        *place = schema.clone();
    }
    if let Some(items) = place.pointer_mut("/properties/todos/items") {
        inline_schema(items, results);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_mcp::model::{Read, Tool};

    #[test]
    fn every_tool_has_an_output_schema() {
        let tools = tools();
        assert_eq!(tools.len(), 5);
        for tool in tools {
            let tool = Tool::read(&tool.into()).expect("a tool");
            let output: Value = tool.output_schema.expect("a schema").decode().expect("JSON");
            assert!(output["required"].is_array(), "{}", tool.name);
            assert_ne!(output.pointer("/properties/todos/items"), Some(&"todo".into()));
        }
    }
}
