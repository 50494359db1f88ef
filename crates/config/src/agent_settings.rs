//! Settings of the agent's loop: limits of a run, approval rules, context and the format of the answer.

use crate::{glob::Glob, keywords::keywords};
use serde_json::Value;
use std::time::Duration;

/// Settings of the agent's loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSettings {
    /// Limits of a run.
    pub limits: RunLimits,
    /// Which calls need approval.
    pub approval: ApprovalRules,
    /// The part of a conversation that the model sees.
    pub context: ContextSettings,
    /// JSON Schema of the final answer.
    pub response_format: Option<Value>,
}

/// Limits of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLimits {
    /// Maximum number of answers with tools.
    pub max_turns: u64,
    /// Maximum number of tool calls.
    pub max_tool_calls: u64,
    /// Maximum number of identical calls with the same result.
    pub max_repeats: u64,
    /// Maximum number of calls at the same time.
    pub max_parallel: usize,
    /// Maximum duration.
    pub run_timeout: Duration,
    /// Maximum number of tokens of all requests and answers.
    pub max_total_tokens: u64,
    /// Time that a person has to decide about a call.
    pub approval_timeout: Duration,
}

impl Default for RunLimits {
    fn default() -> RunLimits {
        RunLimits {
            max_turns: 25,
            max_tool_calls: 100,
            max_repeats: 3,
            max_parallel: 8,
            run_timeout: Duration::from_secs(600),
            max_total_tokens: 500_000,
            approval_timeout: Duration::from_secs(600),
        }
    }
}

/// Rules that decide about calls, as globs over `source:tool`. The strictest matching list wins.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRules {
    /// Decision about calls that neither a rule nor a trusted hint decides.
    pub default: Decision,
    /// Calls to allow.
    pub allow: Vec<Glob>,
    /// Calls to ask about.
    pub ask: Vec<Glob>,
    /// Calls to deny.
    pub deny: Vec<Glob>,
    /// Decision about calls that may write, once the model has seen content of an open-world source.
    pub after_untrusted: Decision,
}

impl Default for ApprovalRules {
    fn default() -> ApprovalRules {
        ApprovalRules {
            default: Decision::Ask,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            after_untrusted: Decision::Ask,
        }
    }
}

/// Decision about a call. Stricter decisions are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Make the call.
    Allow,
    /// Ask a person.
    Ask,
    /// Do not make the call.
    Deny,
}

/// Settings for the part of a conversation that the model sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextSettings {
    /// Whether the instructions begin with a few sentences about tool results.
    pub preamble: bool,
    /// Whether the oldest part of a long conversation is summed up.
    pub compact: bool,
}

impl Default for ContextSettings {
    fn default() -> ContextSettings {
        ContextSettings { preamble: true, compact: true }
    }
}

keywords!(Decision { Allow = "allow", Ask = "ask", Deny = "deny" });
