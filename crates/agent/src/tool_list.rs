//! The tools that a request offers, written once per catalog in the form of a dialect.

use serde_json::Value;

/// Tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name that the model uses.
    pub name: String,
    /// Description for the model. May be empty.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
}

/// Tools in the form of one dialect. [`crate::dialect::Dialect::write_tools`] makes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolList {
    tools: Vec<Value>,
}

impl ToolList {
    pub(crate) fn new(tools: Vec<Value>) -> ToolList {
        ToolList { tools }
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Returns whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the tools as one value that does not depend on their order.
    pub(crate) fn to_sorted_json(&self) -> Value {
        let mut tools = self.tools.clone();
        tools.sort_by_cached_key(Value::to_string);
        Value::Array(tools)
    }

    /// Returns the list if there are tools. Some servers refuse an empty one.
    pub(crate) fn non_empty(&self) -> Option<&[Value]> {
        (!self.tools.is_empty()).then_some(&self.tools)
    }
}
