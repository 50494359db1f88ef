//! `results:` of agent.yaml and `[results]` of wharf.toml: which results are stored, and how many.

use crate::keywords::keywords;
use std::time::Duration;

/// Settings for the results of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSettings {
    /// Size in bytes above which a result is stored, and its reader receives a preview and a handle.
    pub inline_limit: usize,
    /// How long a stored result is kept, outside of kept conversations.
    pub keep: Duration,
    /// The readers that receive handles. Others receive the result itself.
    pub readers: Vec<ResultReader>,
    /// Which stored results may be passed to the tools of this source.
    pub pass: PassRule,
}

/// A kind of caller that may receive a handle instead of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultReader {
    /// The agent of `run`, `chat` and the chat routes.
    Agent,
    /// MCP clients of the gateway.
    Mcp,
    /// REST clients of the gateway.
    Rest,
}

/// Which stored results may be passed to a tool as arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassRule {
    /// Results of every source.
    Any,
    /// Results of the same source.
    SameSource,
    /// None.
    Off,
}

/// Limits on what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultQuotas {
    /// Maximum size of the results of one principal, in bytes.
    pub per_principal: u64,
    /// Maximum number of results of one principal.
    pub count: u64,
    /// Maximum size of all results, in bytes.
    pub total: u64,
}

impl ResultSettings {
    /// Returns whether a reader of this kind receives handles.
    // Every call asks this, and this crate is not optimized.
    #[inline]
    pub fn is_for(&self, reader: ResultReader) -> bool {
        self.readers.contains(&reader)
    }
}

impl Default for ResultSettings {
    fn default() -> ResultSettings {
        ResultSettings {
            inline_limit: 32 * 1024,
            keep: Duration::from_secs(3600),
            readers: vec![ResultReader::Agent],
            pass: PassRule::Any,
        }
    }
}

impl Default for ResultQuotas {
    fn default() -> ResultQuotas {
        ResultQuotas { per_principal: 64 << 20, count: 1000, total: 1 << 30 }
    }
}

keywords!(ResultReader { Agent = "agent", Mcp = "mcp", Rest = "rest" });
keywords!(PassRule { Any = "any", SameSource = "same-source", Off = "off" });
