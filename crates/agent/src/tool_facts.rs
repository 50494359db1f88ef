//! Facts about a tool that decide about its calls: its identity, its source and the hints of its server.

use crate::digest::json_digest;
use serde_json::{Value, json};
use wharf_config::{DeferLoading, Endpoint, Source};
use wharf_runtime::{
    catalog::{ToolEntry, tool_id},
    result_handle::ResultTool,
};

/// Facts about one tool that decide about calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolFacts {
    /// Name that the model uses.
    pub(crate) name: String,
    /// `source:tool`, with the name on the wire.
    pub(crate) id: String,
    /// Name of the source.
    pub(crate) source: String,
    /// Whether the server declares that the tool changes nothing.
    pub(crate) is_read_only: bool,
    /// Whether the server declares that the tool destroys something.
    pub(crate) is_destructive: bool,
    /// Whether the tool reaches the open world, so that its results may contain anything.
    pub(crate) is_open_world: bool,
    /// Whether the hints of the source count.
    pub(crate) is_trusted: bool,
    /// Whether the source is built in.
    pub(crate) is_builtin: bool,
    /// Whether the model is offered it at once, or has to find it.
    pub(crate) defer_loading: DeferLoading,
    /// Hash of the definition, to which an approval is bound.
    pub(crate) definition_hash: String,
}

impl ToolFacts {
    /// Returns whether a call may change something, so that its order matters.
    pub(crate) fn may_write(&self) -> bool {
        !(self.is_trusted && self.is_read_only)
    }

    pub(crate) fn of(entry: &ToolEntry) -> ToolFacts {
        let annotations = entry.tool.as_ref().and_then(|it| it.annotations.as_ref());
        let annotations = annotations.map(|it| it.decode_or_default::<Value>()).unwrap_or_default();
        let names = (entry.name.as_str(), &*entry.wire_name);
        ToolFacts {
            definition_hash: definition_hash(entry),
            ..ToolFacts::of_listed(entry.config(), names, &annotations)
        }
    }

    /// Returns the facts about a tool of which only the shown name, the name on the wire and the annotations are known.
    pub(crate) fn of_listed(
        source: &Source,
        (name, wire_name): (&str, &str),
        annotations: &Value,
    ) -> ToolFacts {
        let hint = |name: &str| annotations[name].as_bool();
        let is_builtin = matches!(source.endpoint, Endpoint::Builtin(_));
        ToolFacts {
            name: name.to_owned(),
            id: tool_id(source.name.expose(), wire_name),
            source: source.name.expose().to_owned(),
            is_read_only: hint("readOnlyHint").unwrap_or(false),
            is_destructive: hint("destructiveHint").unwrap_or(false),
            is_open_world: !is_builtin && hint("openWorldHint").unwrap_or(true),
            is_trusted: source.trust,
            is_builtin,
            defer_loading: source.defer_loading,
            definition_hash: String::new(),
        }
    }

    /// Returns the facts about one of our own tools. It changes nothing, and what it reads came from another tool.
    pub(crate) fn of_result_tool(tool: ResultTool) -> ToolFacts {
        ToolFacts {
            name: tool.name().to_owned(),
            id: format!("wharf:{}", tool.wire_name()),
            source: "wharf".to_owned(),
            is_read_only: true,
            is_destructive: false,
            is_open_world: false,
            is_trusted: true,
            is_builtin: true,
            defer_loading: DeferLoading::Never,
            definition_hash: String::new(),
        }
    }

    /// Returns the hints that are shown to people.
    pub(crate) fn hints(&self) -> Value {
        json!({ "read_only": self.is_read_only, "destructive": self.is_destructive,
            "open_world": self.is_open_world, "trusted": self.is_trusted })
    }
}

fn definition_hash(entry: &ToolEntry) -> String {
    let Some(tool) = &entry.tool else { return String::new() };
    let annotations = tool.annotations.as_ref().map(|it| it.decode_or_default::<Value>());
    json_digest(&json!({ "description": entry.description, "annotations": annotations,
        "input_schema": tool.input_schema.decode_or_default::<Value>() }))
}
