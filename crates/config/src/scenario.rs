//! A test of an agent: what to do, which recording answers, and what is expected. `*.test.yaml` files hold them.

use crate::{fault_rules::FaultRule, glob::Glob, record_settings::TextPattern};
use serde_json::{Map, Value};
use std::{collections::BTreeMap, path::PathBuf};

/// A test of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name for people.
    pub name: Option<String>,
    /// The agent file, relative to the scenario's folder.
    pub agent: Option<PathBuf>,
    /// The recording, relative to the scenario's folder.
    pub cassette: PathBuf,
    /// Faults to inject.
    pub faults: Vec<FaultRule>,
    /// Task of the agent.
    pub task: ScenarioTask,
    /// Expectations.
    pub expect: Expectations,
}

/// Task of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum ScenarioTask {
    /// Sends a message to the agent.
    Message(String),
    /// Calls tools, without a model.
    Calls(Vec<ScenarioCall>),
}

/// A call that a scenario makes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioCall {
    /// The tool: its shown name, or `server:tool`.
    pub tool: String,
    /// Arguments.
    pub arguments: Map<String, Value>,
}

/// Expectations of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectations {
    /// Calls, if they are expected.
    pub calls: Option<Vec<ExpectedCall>>,
    /// How the calls are compared.
    pub order: CallOrder,
    /// Tools that must not be called, by shown name.
    pub never: Vec<Glob>,
    /// The answer of the agent.
    pub answer: TextCheck,
    /// Maximum number of turns of the model.
    pub max_turns: Option<u64>,
    /// Maximum number of tokens.
    pub max_tokens: Option<u64>,
}

/// A call that a scenario expects.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCall {
    /// Shown name of the tool, or `server:tool`.
    pub tool: String,
    /// Arguments that the call must have. It may have more.
    pub arguments: Map<String, Value>,
    /// Check of its result.
    pub result: TextCheck,
}

/// How expected calls are compared with those that were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// Exactly these, in this order.
    #[default]
    Exact,
    /// These in this order, with others in between.
    Subsequence,
    /// These in any order, with others in between.
    Any,
}

/// Check of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextCheck {
    /// Texts that it must contain.
    pub contains: Vec<String>,
    /// Texts that it must not contain.
    pub not: Vec<String>,
    /// Pattern that it must match.
    pub matches: Option<TextPattern>,
    /// Values that it must have as JSON, by pointer.
    pub json: BTreeMap<String, Value>,
}

impl CallOrder {
    pub(crate) const KEYWORDS: &'static [&'static str] = &["exact", "subsequence", "any"];

    pub(crate) fn parse(word: &str) -> Option<CallOrder> {
        match word {
            "exact" => Some(CallOrder::Exact),
            "subsequence" => Some(CallOrder::Subsequence),
            "any" => Some(CallOrder::Any),
            _ => None,
        }
    }
}
