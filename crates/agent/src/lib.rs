//! Runs a conversation with a model and the tools it calls.
//!
//! [`Agent::run`] handles one message of a user: it asks the model, makes the calls that the model wants, and reports
//! [`AgentEvent`]s. The decisions are in a pure state machine. [`client::ModelClient`] asks a model over HTTP:
//! [`dialect::Dialect`] writes the body of a request, and [`answer::AnswerReader`] turns the bytes of the response into
//! an [`answer::Answer`]. The crate knows nothing of HTTP servers, the command line or MCP transports.

mod agent;
pub mod answer;
pub mod arguments;
mod call_order;
pub mod client;
mod context;
pub mod dialect;
mod digest;
mod estimate;
mod events;
mod framing;
pub mod message;
pub mod model;
mod policy;
mod provider;
mod result_text;
mod run_ending;
mod run_state;
mod tool_facts;
pub mod tool_list;
mod toolbox;
pub mod view;

#[cfg(test)]
mod tests;

pub use agent::{Agent, ApprovalDecisions, Approver, RunRequest, RunResult};
pub use events::{AgentEvent, ApprovalQuestion, ToolCallEvent, ToolStatus};
pub use policy::RunRules;
pub use provider::{default_endpoint, key_variable, key_variables, uses_key_variable};
pub use run_ending::{LimitKind, RunError, RunReport, RunStatus, RunUsage};
pub use run_state::ApprovalAnswer;
