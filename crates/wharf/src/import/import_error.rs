//! The error for a file that cannot be imported at all.

use std::{error::Error, fmt};

/// An import error. Each message continues a sentence that begins with the file's name: "`mcp.json` …".
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ImportError {
    /// Invalid JSON, with the parser's message and position.
    NotJson(String),
    /// Invalid TOML, with the parser's message.
    NotToml(String),
    /// Valid JSON, but not a list of servers.
    WrongShape(String),
    /// An empty list of servers.
    NoServers,
    /// Too many servers, with their number and the limit.
    TooManyServers(usize, usize),
    /// The servers are valid separately, but not together.
    Unusable(String),
}

impl ImportError {
    /// Returns a hint for the user.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            ImportError::NotJson(_) => {
                Some("comments and trailing commas are fine; everything else must be JSON")
            }
            ImportError::NotToml(_) => None,
            ImportError::WrongShape(_) => Some(
                "servers are listed under `mcpServers` (Claude, Cursor, Windsurf, Gemini), `servers` (VS Code), `context_servers` (Zed) or `mcp_servers` (Codex)",
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
            ImportError::NoServers => f.write_str("contains no servers"),
            ImportError::TooManyServers(found, most) => {
                write!(f, "contains {found} servers; at most {most} are imported at once")
            }
            ImportError::Unusable(what) => {
                write!(f, "cannot be converted to an agent file: {what}")
            }
        }
    }
}

impl Error for ImportError {}
