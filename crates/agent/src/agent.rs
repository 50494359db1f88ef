//! Defines what runs need: the model, the tools, the message of the user, and who is asked and told.
//!
//! `Agent::run`, in the module `run_driver`, does the work.

use crate::{
    attachment::Attachment,
    client::ModelClient,
    consent::InputAnswerer,
    conversation_store::ConversationStore,
    events::{AgentEvent, ApprovalQuestion},
    history::History,
    message::{Content, Message},
    policy::RunRules,
    run_ending::RunReport,
    run_state::ApprovalAnswer,
};
use std::{future::Future, pin::Pin, sync::Arc};
use uuid::Uuid;
use wharf_config::{AgentSettings, ModelPrice};
use wharf_runtime::{CallRecord, Caller, Catalog, Handle, Redactor};

/// Decisions about calls, by the id of the call, once they are known.
pub type ApprovalDecisions<'a> = Pin<Box<dyn Future<Output = Vec<(String, ApprovalAnswer)>> + Send + 'a>>;

/// Asks people about calls. The decisions are by the id of the call; a call without one is denied.
pub trait Approver: Send + Sync {
    /// Asks about all undecided calls of one answer.
    fn decide(&self, questions: Vec<ApprovalQuestion>) -> ApprovalDecisions<'_>;
}

/// Keeps the records of calls.
pub trait CallLog: Send + Sync {
    /// Records a call that has ended, and returns once it is durable.
    fn record(&self, record: Arc<CallRecord>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Runs conversations with one model and the tools of one runtime.
pub struct Agent {
    /// The model.
    pub model: Arc<ModelClient>,
    /// The tools.
    pub tools: Handle,
    /// Replaces secrets in results, events and reports.
    pub redactor: Arc<Redactor>,
    /// Records every call before its result is used.
    pub call_log: Option<Arc<dyn CallLog>>,
}

/// One message of a user, and how to treat it.
pub struct RunRequest {
    /// Id of the conversation.
    pub conversation_id: String,
    /// Id of the run.
    pub run_id: String,
    /// The conversation so far.
    pub history: History,
    /// Messages before it that belong to this run, as those of a prompt.
    pub earlier: Vec<Message>,
    /// The message. Empty if the run continues after decisions.
    pub message: Vec<Content>,
    /// Files and resources that follow the message. A text that is too long for the context becomes a handle.
    pub attachments: Vec<Attachment>,
    /// Instructions for the model.
    pub instructions: String,
    /// Limits and other settings.
    pub settings: AgentSettings,
    /// Rules of the user, beside those of the settings.
    pub rules: RunRules,
    /// Asks people about calls. Without one, calls that need approval are denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// Asks people what servers want to know during calls. Without it, servers cannot ask them.
    pub inputs: Option<Arc<dyn InputAnswerer>>,
    /// Price of the model, if it is known.
    pub price: Option<ModelPrice>,
    /// Tools as they are when the run begins.
    pub catalog: Arc<Catalog>,
    /// The authenticated principal on whose behalf calls are made.
    pub principal: Option<Arc<str>>,
    /// Keeps the conversation. Without it, the conversation is only in memory.
    pub store: Option<Arc<dyn ConversationStore>>,
    /// Whether the run ends as waiting when a person has to decide. It continues with the decisions in another run of
    /// the same id. Needs a store.
    pub can_wait: bool,
    /// Decisions for which the run has waited, by the id of the call.
    pub decisions: Vec<(String, ApprovalAnswer)>,
    /// Describes the client of the calls. Its consent is replaced if people or the model answer servers.
    pub caller: Option<Caller>,
}

impl RunRequest {
    /// Creates a request for a new conversation, with the approval rules of the settings, that asks nobody.
    pub fn new(message: Vec<Content>, settings: AgentSettings, catalog: Arc<Catalog>) -> RunRequest {
        RunRequest {
            conversation_id: Uuid::now_v7().to_string(),
            run_id: Uuid::now_v7().to_string(),
            history: History::default(),
            earlier: Vec::new(),
            message,
            attachments: Vec::new(),
            instructions: String::new(),
            rules: RunRules { configured: settings.approval.clone(), ..RunRules::default() },
            settings,
            approver: None,
            inputs: None,
            price: None,
            catalog,
            principal: None,
            caller: None,
            store: None,
            can_wait: false,
            decisions: Vec::new(),
        }
    }
}

/// Ends a run from outside.
pub struct RunSignals<C, D> {
    /// Ends the run at once when it completes.
    pub cancel: C,
    /// Ends the run as soon as none of its calls is under way when it completes, because the program stops.
    pub drain: D,
}

/// End of a run, and the calls that it made.
pub struct RunResult {
    /// How the run ended. Without meaning if it waits.
    pub report: RunReport,
    /// Whether the run waits for decisions.
    pub is_waiting: bool,
    /// The calls, in the order in which they ended.
    pub calls: Vec<Arc<CallRecord>>,
    /// Messages that the run added to the conversation, beginning with the user's.
    pub messages: Vec<Message>,
}

/// Callback for the events of a run. It must not block.
pub(crate) type OnEvent<'a> = &'a mut (dyn FnMut(AgentEvent) + Send);
