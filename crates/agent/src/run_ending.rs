//! How a run ended: its status, its error and what it used.

use crate::{
    dialect::{FinishReason, Usage},
    model::trouble::Trouble,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_config::ModelPrice;

/// Status of a run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The model answered.
    Finished,
    /// A limit ended the run.
    Limit,
    /// The model refused, or the provider filtered its answer.
    Refused,
    /// The model could not be asked, or its answer is unusable.
    Failed,
    /// The time of the run was over.
    Timeout,
    /// The user cancelled the run.
    Cancelled,
    /// The program stopped during the run.
    Interrupted,
}

impl RunStatus {
    /// Returns the name of the status.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Finished => "finished",
            RunStatus::Limit => "limit",
            RunStatus::Refused => "refused",
            RunStatus::Failed => "failed",
            RunStatus::Timeout => "timeout",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Interrupted => "interrupted",
        }
    }
}

/// Limit of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitKind {
    /// `limits.max_turns`
    Turns,
    /// `limits.max_tool_calls`
    ToolCalls,
    /// `limits.max_repeats`
    Repeats,
    /// `limits.max_total_tokens`
    TotalTokens,
    /// `limits.max_cost`
    Cost,
    /// `model.max_tokens`, or the longest answer of the model
    AnswerLength,
}

impl LimitKind {
    /// Returns the key of agent.yaml that sets the limit.
    pub fn key(self) -> &'static str {
        match self {
            LimitKind::Turns => "limits.max_turns",
            LimitKind::ToolCalls => "limits.max_tool_calls",
            LimitKind::Repeats => "limits.max_repeats",
            LimitKind::TotalTokens => "limits.max_total_tokens",
            LimitKind::Cost => "limits.max_cost",
            LimitKind::AnswerLength => "model.max_tokens",
        }
    }
}

/// Reason why a run did not finish.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The model could not be asked.
    #[error("{0}")]
    Model(#[from] Trouble),
    /// The conversation does not fit into the context window.
    #[error("the conversation does not fit into the context window of {0} tokens")]
    ContextFull(u64),
    /// A limit was reached.
    #[error("the limit '{}' is reached", .0.key())]
    Limit(LimitKind),
    /// The model refused, or the provider filtered its answer.
    #[error("{}", refusal(*.0))]
    Refused(FinishReason),
    /// The final answer does not have the configured format.
    #[error("the answer does not have the format 'response_format': {0}")]
    OutputInvalid(String),
    /// The time of the run was over.
    #[error("the run took longer than {0} s")]
    Timeout(u64),
    /// The user cancelled the run.
    #[error("the run was cancelled")]
    Cancelled,
    /// The program stopped during the run.
    #[error("wharf stopped during the run")]
    Interrupted,
    /// The conversation could not be written.
    #[error("the conversation could not be written: {0}")]
    Store(String),
}

fn refusal(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Filtered => "the provider filtered the prompt or the answer",
        _ => "the model refused to answer",
    }
}

impl RunError {
    /// Returns the status of a run that ended this way.
    pub fn status(&self) -> RunStatus {
        match self {
            RunError::Model(_)
            | RunError::ContextFull(_)
            | RunError::OutputInvalid(_)
            | RunError::Store(_) => RunStatus::Failed,
            RunError::Limit(_) => RunStatus::Limit,
            RunError::Refused(_) => RunStatus::Refused,
            RunError::Timeout(_) => RunStatus::Timeout,
            RunError::Cancelled => RunStatus::Cancelled,
            RunError::Interrupted => RunStatus::Interrupted,
        }
    }

    /// Returns the `error_type` that clients receive.
    pub fn error_type(&self) -> &'static str {
        match self {
            RunError::Model(trouble) => trouble.error_type(),
            RunError::ContextFull(_) => "context_full",
            RunError::Limit(_) => "limit_reached",
            RunError::Refused(_) => "content_filtered",
            RunError::OutputInvalid(_) => "output_invalid",
            RunError::Timeout(_) => "timeout",
            RunError::Cancelled => "cancelled",
            RunError::Interrupted | RunError::Store(_) => "internal",
        }
    }

    /// Returns advice, if there is any.
    pub fn hint(&self) -> Option<String> {
        match self {
            RunError::Model(trouble) => trouble.hint(),
            RunError::ContextFull(_) => Some(
                "start a new conversation, or set 'model.context_window' if the model has a larger one"
                    .into(),
            ),
            RunError::Limit(limit) => Some(format!("raise '{}' in agent.yaml", limit.key())),
            RunError::Timeout(_) => Some("raise 'limits.run_timeout' in agent.yaml".into()),
            RunError::Interrupted => Some("send the next message to continue the conversation".into()),
            RunError::Refused(_) | RunError::OutputInvalid(_) | RunError::Cancelled | RunError::Store(_) => {
                None
            }
        }
    }
}

/// Tokens that a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunUsage {
    /// Sum over all requests.
    pub total: Usage,
    /// Whether a part is estimated, because the provider did not report it.
    pub is_estimated: bool,
}

impl RunUsage {
    /// Adds the usage of one request, reported or estimated.
    pub(crate) fn add(&mut self, reported: Option<Usage>, estimated: Usage) {
        let usage = reported.unwrap_or(estimated);
        self.is_estimated |= reported.is_none();
        self.total.input = self.total.input.saturating_add(usage.input);
        self.total.cached_input = self.total.cached_input.saturating_add(usage.cached_input);
        self.total.output = self.total.output.saturating_add(usage.output);
        self.total.reasoning = self.total.reasoning.saturating_add(usage.reasoning);
    }

    /// Returns the cost, in the currency of the price.
    pub(crate) fn cost(&self, price: ModelPrice) -> f64 {
        let Usage { input, cached_input, output, .. } = self.total;
        let uncached = input.saturating_sub(cached_input) as f64;
        (uncached * price.input + cached_input as f64 * price.cached_input + output as f64 * price.output)
            / 1e6
    }

    /// Returns the number of tokens that count against the limit.
    pub fn tokens(&self) -> u64 {
        self.total.input.saturating_add(self.total.output)
    }
}

/// End of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// Id of the conversation.
    pub conversation_id: String,
    /// Id of the run.
    pub run_id: String,
    /// Text of the last answer.
    pub final_output: String,
    /// Structured answer, if `response_format` is set and the run finished.
    pub structured: Option<Value>,
    /// Names of the tools that were called, each once, in order.
    pub tools_called: Vec<String>,
    /// Number of whole answers.
    pub turns: u64,
    /// Tokens used.
    pub usage: RunUsage,
    /// Cost in the currency of the price list, if the model has a price.
    pub cost: Option<f64>,
    /// Reason why the run did not finish.
    pub error: Option<RunError>,
}

impl RunReport {
    /// Returns the status.
    pub fn status(&self) -> RunStatus {
        self.error.as_ref().map_or(RunStatus::Finished, RunError::status)
    }
}
