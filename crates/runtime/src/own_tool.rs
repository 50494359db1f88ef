//! Tools that wharf itself offers, beside those of servers. Their prefix is reserved.

use serde_json::Value;

/// Source under which calls of these tools are recorded, and prefix of their names.
pub const OWN_SOURCE: &str = "wharf";

/// Definition of a tool that wharf itself offers.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnTool {
    /// Shown name.
    pub name: &'static str,
    /// Description for models.
    pub description: &'static str,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
}

/// Returns whether a shown name is that of one of our own tools.
pub fn is_own_tool(name: &str) -> bool {
    name.strip_prefix(OWN_SOURCE).is_some_and(|it| it.starts_with("__"))
}
