//! Changes that agent.yaml makes to the tools of a server: what clients see, and which arguments wharf fills in.

use crate::{file_position::FilePosition, glob::Glob, server_config::ServerConfig};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// All overrides of one source. An exact name beats a glob; of several globs that match, the first one applies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Overrides by the exact name on the wire.
    pub exact: BTreeMap<String, ToolOverride>,
    /// Overrides by glob, in the order of the file. They set only `enabled` and `annotations`.
    pub globs: Vec<(Glob, ToolOverride)>,
}

/// Changes to one tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOverride {
    /// Whether the tool exists for clients.
    pub enabled: bool,
    /// Name that replaces the wire name in the shown name.
    pub name: Option<String>,
    /// Title that clients see.
    pub title: Option<String>,
    /// Description that clients see.
    pub description: Option<String>,
    /// Changes to its arguments, by the name that the server uses.
    pub arguments: BTreeMap<String, ArgumentOverride>,
    /// Annotations that replace those of the server, by name.
    pub annotations: Map<String, Value>,
    /// Place in the file.
    pub at: FilePosition,
}

/// Change to one argument of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentOverride {
    /// The change.
    pub change: ArgumentChange,
    /// Place in the file.
    pub at: FilePosition,
}

/// The ways to change an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentChange {
    /// Clients do not see the argument; wharf always sends this value.
    Fixed(ServerConfig),
    /// Clients do not see the argument, and wharf does not send it.
    Hidden,
    /// Clients see the argument in another form.
    Shown {
        /// Name that clients use.
        name: Option<String>,
        /// Description that clients see.
        description: Option<String>,
        /// Value to send if the client omits the argument.
        default: Option<ServerConfig>,
    },
}

impl Overrides {
    /// Returns the override that applies to a tool, by its name on the wire.
    pub fn find(&self, wire_name: &str) -> Option<&ToolOverride> {
        let glob = || self.globs.iter().find(|(glob, _)| glob.matches(wire_name)).map(|(_, it)| it);
        self.exact.get(wire_name).or_else(glob)
    }

    /// Iterates over the values that wharf sends on its own.
    pub fn values(&self) -> impl Iterator<Item = &ServerConfig> {
        let arguments = self.exact.values().flat_map(|it| it.arguments.values());
        arguments.filter_map(|it| match &it.change {
            ArgumentChange::Fixed(value) => Some(value),
            ArgumentChange::Shown { default, .. } => default.as_ref(),
            ArgumentChange::Hidden => None,
        })
    }
}
