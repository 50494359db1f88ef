//! A run to start, and the reasons why it cannot.

use super::DecideError;
use serde_json::Value;
use std::time::Duration;
use wharf_agent::{
    Attachment,
    message::{Content, Message},
    model::ModelChanges,
};
use wharf_config::RunLimits;
use wharf_store::BeginError;

/// A run to start.
#[derive(Default)]
pub(crate) struct NewRun {
    /// The message of the user.
    pub(crate) message: Vec<Content>,
    /// Messages of a prompt before it.
    pub(crate) earlier: Vec<Message>,
    /// Attachments of the message.
    pub(crate) attachments: Vec<Attachment>,
    /// Earlier messages, for protocols whose requests contain the whole conversation.
    pub(crate) history: Vec<Message>,
    /// Instructions of the client, which follow those of the agent file.
    pub(crate) instructions: Option<String>,
    /// Limits of the request. Limits above the configured ones are lowered to them.
    pub(crate) limits: LimitChanges,
    /// JSON Schema of the answer, in place of the configured one.
    pub(crate) response_format: Option<Value>,
    /// People who are asked while the run is under way.
    pub(crate) people: AskedPeople,
    /// Whether the run continues when no client reads its events any more.
    pub(crate) continues_unread: bool,
    /// How long the run continues without a client before it is cancelled.
    pub(crate) unread_grace: Duration,
    /// Options of the model in place of the configured ones.
    pub(crate) model_changes: ModelChanges,
}

/// People who are asked while a run is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AskedPeople {
    /// Those at the client, which receives questions as events.
    #[default]
    Client,
    /// Others, because the client's protocol has no questions: as long as the operator's settings say.
    Others,
}

/// The conversation of a run.
#[derive(Clone, Debug)]
pub(crate) enum ConversationName {
    /// A new one.
    New,
    /// The one with this id.
    Id(String),
    /// The one that a client calls so.
    OfClient(String),
}

/// Limits that a request may tighten.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitChanges {
    pub(crate) max_turns: Option<u64>,
    pub(crate) max_tool_calls: Option<u64>,
    pub(crate) max_repeats: Option<u64>,
    pub(crate) max_parallel: Option<u64>,
    pub(crate) max_total_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) run_timeout: Option<Duration>,
    pub(crate) approval_timeout: Option<Duration>,
}

/// Reason why a run cannot start.
#[derive(Debug)]
pub(crate) enum StartError {
    /// The agent file has no model, or limits the cost of one without a price. Contains the reason.
    NoModel(String),
    /// The model cannot be asked, for example because it has no key. Contains the reason.
    UnusableModel(String),
    /// The circuit breaker of the model is open for this time.
    BreakerOpen(Duration),
    /// The request limits the cost, but the model has no price. Contains the reason.
    NoPrice(String),
    /// The model's API does not have this option.
    UnknownOption(&'static str),
    /// There are too many runs. Contains the limit.
    TooMany(usize),
    /// The conversation cannot be used.
    Conversation(BeginError),
    /// A decision about a call is not accepted.
    Decision(DecideError),
    /// The run waits for this many more decisions.
    Undecided(usize),
    /// The program is shutting down.
    ShuttingDown,
}

impl From<BeginError> for StartError {
    fn from(error: BeginError) -> StartError {
        StartError::Conversation(error)
    }
}

impl From<DecideError> for StartError {
    fn from(error: DecideError) -> StartError {
        StartError::Decision(error)
    }
}

impl LimitChanges {
    /// Lowers the limits to those that are set here.
    pub(super) fn tighten(self, limits: &mut RunLimits) {
        let lower =
            |limit: &mut u64, wanted: Option<u64>| *limit = wanted.map_or(*limit, |it| it.min(*limit));
        lower(&mut limits.max_turns, self.max_turns);
        lower(&mut limits.max_tool_calls, self.max_tool_calls);
        lower(&mut limits.max_repeats, self.max_repeats);
        lower(&mut limits.max_total_tokens, self.max_total_tokens);
        if let Some(wanted) = self.max_cost {
            limits.max_cost = Some(limits.max_cost.map_or(wanted, |it| it.min(wanted)));
        }
        let shorten = |limit: &mut Duration, wanted: Option<Duration>| {
            *limit = wanted.map_or(*limit, |it| it.min(*limit))
        };
        shorten(&mut limits.run_timeout, self.run_timeout);
        shorten(&mut limits.approval_timeout, self.approval_timeout);
        if let Some(wanted) = self.max_parallel.and_then(|it| usize::try_from(it).ok()) {
            limits.max_parallel = limits.max_parallel.min(wanted.max(1));
        }
    }
}
