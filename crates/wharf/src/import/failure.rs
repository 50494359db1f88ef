//! Why a file cannot be imported at all.

use std::{error::Error, fmt};

/// Each reads on from the name of the file: "`mcp.json` …".
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ImportError {
    /// With what the parser says and where.
    NotJson(String),
    /// With what the parser says.
    NotToml(String),
    /// It is JSON, but not a list of servers.
    WrongShape(String),
    /// The list is there and empty.
    NoServers,
    /// With how many there are, and how many there may be.
    TooManyServers(usize, usize),
    /// Every server was fine on its own, and the whole is not.
    Unusable(String),
}

impl ImportError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            ImportError::NotJson(_) => {
                Some("comments and trailing commas are fine; everything else must be JSON")
            }
            ImportError::NotToml(_) => None,
            ImportError::WrongShape(_) => Some(
                "servers stand under `mcpServers` (Claude, Cursor, Windsurf, Gemini), `servers` (VS Code), `context_servers` (Zed) or `mcp_servers` (Codex)",
            ),
            ImportError::NoServers => Some("`wharf init` without `--from` writes a working example"),
            ImportError::TooManyServers(..) => Some("split the file and import the parts"),
            ImportError::Unusable(_) => None,
        }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::NotJson(what) => write!(f, "is not JSON: {what}"),
            ImportError::NotToml(what) => write!(f, "is not TOML: {what}"),
            ImportError::WrongShape(what) => write!(f, "is not a list of MCP servers: {what}"),
            ImportError::NoServers => f.write_str("names no servers"),
            ImportError::TooManyServers(found, most) => {
                write!(f, "names {found} servers; at most {most} are imported at once")
            }
            ImportError::Unusable(what) => {
                write!(f, "cannot be made into an agent file: {what}")
            }
        }
    }
}

impl Error for ImportError {}
