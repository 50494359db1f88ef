//! Runs a conversation with a model and the tools it calls.
//!
//! [`Agent::run`] handles one message of a user: it asks the model, makes the calls that the model wants, and reports
//! [`AgentEvent`]s. The decisions are in a pure state machine. [`client::ModelClient`] asks a model over HTTP:
//! [`dialect::Dialect`] writes the body of a request, and [`answer::AnswerReader`] turns the bytes of the response into
//! an [`answer::Answer`]. The crate knows nothing of HTTP servers, the command line or MCP transports.

mod agent;
pub mod answer;
pub mod arguments;
mod attachment;
mod call_order;
pub mod client;
mod consent;
mod context;
mod conversation_store;
pub mod dialect;
mod digest;
mod entry;
mod estimate;
mod events;
mod framing;
mod history;
mod image;
pub mod message;
pub mod model;
mod model_tape;
mod policy;
mod provider;
mod redaction;
mod result_blocks;
mod result_text;
mod run_driver;
mod run_ending;
mod run_state;
mod tool_facts;
pub mod tool_list;
mod toolbox;
pub mod view;

#[cfg(test)]
mod tests;

pub use agent::{Agent, ApprovalDecisions, Approver, CallLog, RunRequest, RunResult, RunSignals};
pub use attachment::{Attachment, fence};
pub use consent::{InputAnswer, InputAnswerer, InputFuture, InputKind, InputQuestion, check_form};
pub use conversation_store::{ConversationStore, EntryBatch, StoreFuture, StoredState};
pub use entry::{Entry, EntryBody, EntryText};
pub use events::{AgentEvent, ApprovalQuestion, ToolCallEvent, ToolStatus};
pub use history::History;
pub use image::check_image;
pub use model_tape::ModelTape;
pub use policy::{RunRules, approved_definition};
pub use provider::{default_endpoint, key_variable, key_variables, uses_key_variable};
pub use result_text::CallFate;
pub use run_ending::{LimitKind, RunError, RunReport, RunStatus, RunUsage};
pub use run_state::ApprovalAnswer;
pub use toolbox::is_deferred;
