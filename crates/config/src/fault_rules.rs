//! Faults to inject into calls, to test how an agent copes with them. `--faults` names a file with them, and scenarios
//! can have them too. The agent file cannot, so no agent runs with faults by accident.

use crate::glob::Glob;
use std::time::Duration;

/// Faults to inject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultRules {
    /// Seed of the generator that [`FaultTrigger::Rate`] uses.
    pub seed: u64,
    /// Rules in the order of the file. The first that applies to a call wins.
    pub rules: Vec<FaultRule>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// The calls that the rule is about.
    pub target: FaultTarget,
    /// The fault.
    pub effect: FaultEffect,
    /// Which of these calls get the fault.
    pub trigger: FaultTrigger,
}

/// The calls that a rule is about.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultTarget {
    /// Calls of tools, as a glob over `server:tool`.
    Tool(Glob),
    /// Questions to the model.
    Model,
}

/// A fault.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultEffect {
    /// The request is sent later.
    Delay(Duration),
    /// The request is lost, so that its caller waits until a timeout.
    Drop,
    /// The connection ends.
    Disconnect,
    /// The server returns a JSON-RPC error.
    RpcError {
        /// JSON-RPC error code.
        code: i64,
        /// Error message.
        text: String,
    },
    /// The tool fails.
    ToolError {
        /// Text of the result.
        text: String,
    },
    /// The result is this long, in bytes.
    Oversized(usize),
    /// The response is not valid JSON.
    Malformed,
    /// The server announces this many changes of its tool list, and then receives the request.
    ListChanged(u64),
}

/// Which calls get a fault, of those that a rule is about.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultTrigger {
    /// All of them.
    Always,
    /// Those with these numbers, counted from 1.
    Nth(Vec<u64>),
    /// This share of them, from 0 to 1.
    Rate(f64),
}

impl FaultRules {
    /// Returns whether a rule is about questions to the model.
    pub fn has_model_rules(&self) -> bool {
        self.rules.iter().any(|it| it.target == FaultTarget::Model)
    }
}

impl FaultEffect {
    pub(crate) const KEYWORDS: &'static [&'static str] =
        &["delay", "drop", "disconnect", "rpc_error", "tool_error", "oversized", "malformed", "list_changed"];

    /// Returns the name of the kind.
    pub fn as_str(&self) -> &'static str {
        match self {
            FaultEffect::Delay(_) => "delay",
            FaultEffect::Drop => "drop",
            FaultEffect::Disconnect => "disconnect",
            FaultEffect::RpcError { .. } => "rpc_error",
            FaultEffect::ToolError { .. } => "tool_error",
            FaultEffect::Oversized(_) => "oversized",
            FaultEffect::Malformed => "malformed",
            FaultEffect::ListChanged(_) => "list_changed",
        }
    }

    /// Returns whether a question to the model can have this fault.
    pub(crate) fn fits_model(&self) -> bool {
        matches!(self, FaultEffect::Delay(_) | FaultEffect::Drop | FaultEffect::RpcError { .. })
    }
}
