//! Settings of the agent's loop: limits of a run, approval rules, context and the format of the answer. And what the
//! operator allows all agents.

use crate::{breaker_policy::BreakerPolicy, glob::Glob, keywords::keywords};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

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
    /// Which servers may use the model.
    pub sampling: SamplingPolicy,
}

/// Decides which servers may ask the model something during a call (`sampling`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingPolicy {
    /// Decision about servers that are not named.
    pub default: Decision,
    /// Decisions about servers, by name.
    pub sources: BTreeMap<String, Decision>,
}

impl Default for SamplingPolicy {
    fn default() -> SamplingPolicy {
        SamplingPolicy { default: Decision::Deny, sources: BTreeMap::new() }
    }
}

impl SamplingPolicy {
    /// Returns the decision about a server.
    pub fn decide(&self, source: &str) -> Decision {
        self.sources.get(source).copied().unwrap_or(self.default)
    }

    /// Returns whether any server may ask.
    pub fn is_possible(&self) -> bool {
        self.default < Decision::Deny || self.sources.values().any(|it| *it < Decision::Deny)
    }
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
    /// Maximum cost of all requests and answers, in the currency of the price list.
    pub max_cost: Option<f64>,
    /// Time that a person has to decide about a call.
    pub approval_timeout: Duration,
}

impl RunLimits {
    /// Limits that are never reached.
    pub fn unlimited() -> RunLimits {
        RunLimits {
            max_turns: u64::MAX,
            max_tool_calls: u64::MAX,
            max_repeats: u64::MAX,
            max_parallel: usize::MAX,
            run_timeout: Duration::MAX,
            max_total_tokens: u64::MAX,
            max_cost: None,
            approval_timeout: Duration::MAX,
        }
    }

    /// Lowers every limit that is above the other one.
    pub fn tighten(&mut self, other: &RunLimits) {
        self.max_turns = self.max_turns.min(other.max_turns);
        self.max_tool_calls = self.max_tool_calls.min(other.max_tool_calls);
        self.max_repeats = self.max_repeats.min(other.max_repeats);
        self.max_parallel = self.max_parallel.min(other.max_parallel);
        self.run_timeout = self.run_timeout.min(other.run_timeout);
        self.max_total_tokens = self.max_total_tokens.min(other.max_total_tokens);
        self.max_cost = match (self.max_cost, other.max_cost) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
        self.approval_timeout = self.approval_timeout.min(other.approval_timeout);
    }
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
            max_cost: None,
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

/// The operator's settings for agents, `[agent]` of wharf.toml.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentPolicy {
    /// Retention time of conversations. `None` means forever.
    pub keep: Option<Duration>,
    /// Upper bounds of the limits of runs.
    pub limits: RunLimits,
    /// Approval rules that agent files and users cannot loosen.
    pub approval: OperatorRules,
    /// Time that people have to decide about calls of a client of OpenAI's protocol, which cannot be asked itself.
    pub openai_approval_wait: Duration,
    /// Thresholds of the circuit breakers of models.
    pub breaker: BreakerPolicy,
    /// Prices of models, by name.
    pub prices: BTreeMap<String, ModelPrice>,
}

impl Default for AgentPolicy {
    fn default() -> AgentPolicy {
        AgentPolicy {
            keep: Some(Duration::from_secs(90 * 86_400)),
            limits: RunLimits::unlimited(),
            approval: OperatorRules::default(),
            openai_approval_wait: Duration::ZERO,
            breaker: BreakerPolicy::MODEL,
            prices: BTreeMap::new(),
        }
    }
}

/// The operator's approval rules. They decide only about calls that they name, unless there is a default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorRules {
    /// Decision about calls that neither a rule nor a trusted hint decides.
    pub default: Option<Decision>,
    /// Calls to allow, as far as the agent file allows them.
    pub allow: Vec<Glob>,
    /// Calls to ask about.
    pub ask: Vec<Glob>,
    /// Calls to deny.
    pub deny: Vec<Glob>,
    /// Decision about calls that may write, once the model has seen content of an open-world source.
    pub after_untrusted: Option<Decision>,
}

/// Price of a model per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelPrice {
    /// Tokens of requests.
    pub input: f64,
    /// Tokens of requests that the provider had cached.
    pub cached_input: f64,
    /// Tokens of answers.
    pub output: f64,
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
#[derive(Clone, Debug, PartialEq)]
pub struct ContextSettings {
    /// Whether the instructions begin with a few sentences about tool results.
    pub preamble: bool,
    /// Whether the oldest part of a long conversation is summed up.
    pub compact: bool,
    /// Whether the model is shown the instructions of the servers.
    pub server_instructions: bool,
    /// Maximum number of tokens of the tools that a model is offered. By default a fifth of its context window, at most
    /// [`ContextSettings::MAX_DEFAULT_BUDGET`].
    pub tool_budget: Option<u64>,
    /// Tools that are offered first, as globs over `source:tool`.
    pub pin: Vec<Glob>,
    /// Which tools clients of the gateway are shown.
    pub clients: ClientTools,
}

impl ContextSettings {
    /// Maximum of the default budget, in tokens.
    pub const MAX_DEFAULT_BUDGET: u64 = 16_000;
}

impl Default for ContextSettings {
    fn default() -> ContextSettings {
        ContextSettings {
            preamble: true,
            compact: true,
            server_instructions: false,
            tool_budget: None,
            pin: Vec::new(),
            clients: ClientTools::All,
        }
    }
}

/// Which tools clients of the gateway are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTools {
    /// All tools.
    All,
    /// The pinned tools, and a tool that finds the others.
    Search,
    /// All tools if they fit the budget, otherwise as with `Search`.
    Auto,
}

keywords!(ClientTools { All = "all", Search = "search", Auto = "auto" });
keywords!(Decision { Allow = "allow", Ask = "ask", Deny = "deny" });
