//! Records the turns of a model, or answers from a recording in place of the provider.
//!
//! A turn holds only the messages that are new since the last one. Ids of calls become `c1`, `c2` and so on, so the same
//! conversation gives the same bytes.

mod message_json;
mod response_json;
mod trouble_json;

use crate::{
    answer::{Answer, CallIds},
    attachment::Attachment,
    digest::json_digest,
    message::{AnswerMessage, Content, Message},
    model::{ModelOptions, trouble::Trouble},
    policy::RunRules,
    run_state::ApprovalAnswer,
    view::{ToolChoice, View},
};
use message_json::{CallNumbers, attachment_json, content_json, message_json};
use response_json::{read_response, response_json};
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use trouble_json::{read_trouble, trouble_json};
use wharf_config::FaultEffect;
use wharf_runtime::{
    Glob,
    cassette::{CassettePlayer, RecordedPosition, Recorder, StepKind},
    upstream::FaultInjection,
};

/// Members of a turn that wharf writes itself. They hold no secrets, and hashes in them look like keys.
const OWN_MEMBERS: [&str; 4] = ["model", "params", "restart", "tools"];

/// Records the turns of a model, replays them, or both. The default does neither.
#[derive(Clone, Debug, Default)]
pub struct ModelTape(Option<Arc<TapeState>>);

#[derive(Debug)]
struct TapeState {
    recorder: Option<Arc<Recorder>>,
    player: Option<Arc<CassettePlayer>>,
    /// Faults to inject into questions, if any.
    faults: Option<Arc<FaultInjection>>,
    /// Conversations, by id.
    conversations: Mutex<HashMap<String, TapedConversation>>,
}

/// A message of a user, with what belongs to it.
pub(crate) struct TapedInput<'a> {
    pub(crate) message: &'a [Content],
    /// Messages of a prompt before it.
    pub(crate) earlier: &'a [Message],
    pub(crate) attachments: &'a [Attachment],
}

/// The part of a conversation that the tape knows already.
#[derive(Debug, Default)]
struct TapedConversation {
    /// Hashes of the messages of the last turn, and of its answer.
    messages: Vec<String>,
    calls: CallNumbers,
}

/// A question to the model.
#[derive(Debug)]
pub(crate) struct TapedTurn {
    conversation_id: String,
    position: Option<RecordedPosition>,
    body: Map<String, Value>,
}

impl ModelTape {
    /// Creates a tape that records to one recording, answers from another, or both.
    pub fn new(recorder: Option<Arc<Recorder>>, player: Option<Arc<CassettePlayer>>) -> ModelTape {
        ModelTape::with_faults(recorder, player, None)
    }

    /// Creates a tape that also injects faults into the questions.
    pub fn with_faults(
        recorder: Option<Arc<Recorder>>,
        player: Option<Arc<CassettePlayer>>,
        faults: Option<Arc<FaultInjection>>,
    ) -> ModelTape {
        let is_used = recorder.is_some() || player.is_some() || faults.is_some();
        let conversations = Mutex::default();
        ModelTape(is_used.then(|| Arc::new(TapeState { recorder, player, faults, conversations })))
    }

    /// Counts an attempt to ask the model and returns its fault, if it gets one.
    pub(crate) fn next_fault(&self) -> Option<&FaultEffect> {
        self.0.as_ref()?.faults.as_ref()?.next_for_model()
    }

    /// Returns whether the answers come from a recording, so that the provider is never asked.
    pub fn is_replay(&self) -> bool {
        self.0.as_ref().is_some_and(|it| it.player.is_some())
    }

    /// Records the message of a user and the rules of its run.
    pub(crate) fn record_input(&self, conversation_id: &str, input: &TapedInput<'_>, rules: &RunRules) {
        let TapedInput { message, earlier, attachments } = input;
        let Some(recorder) = self.recorder().filter(|_| !message.is_empty()) else { return };
        let position = recorder.start(conversation_id);
        let patterns = |globs: &[Glob]| globs.iter().map(|it| json!(it.as_str())).collect::<Vec<Value>>();
        let mut body = Map::new();
        let (key, content) = content_json(message);
        body.insert(key.to_owned(), content);
        if !earlier.is_empty() {
            let messages = earlier.iter().map(|it| message_json(it, &mut CallNumbers::default()));
            body.insert("earlier".to_owned(), messages.collect());
        }
        if !attachments.is_empty() {
            body.insert("attachments".to_owned(), attachments.iter().map(attachment_json).collect());
        }
        for (key, globs) in [("allow", &rules.allow), ("deny", &rules.deny)] {
            if !globs.is_empty() {
                body.insert(key.to_owned(), patterns(globs).into());
            }
        }
        if rules.allow_all {
            body.insert("yes".to_owned(), json!(true));
        }
        recorder.finish_step(position, StepKind::Input, body, &["allow", "deny", "yes"]);
    }

    /// Records the decisions of people about calls.
    pub(crate) fn record_approvals(&self, conversation_id: &str, decisions: &[(String, ApprovalAnswer)]) {
        let (Some(state), Some(recorder)) = (&self.0, self.recorder()) else { return };
        let mut conversations = state.conversations();
        let calls = &mut conversations.entry(conversation_id.to_owned()).or_default().calls;
        for (id, answer) in decisions {
            let mut body = Map::new();
            body.insert("call".to_owned(), json!(calls.name(id)));
            body.insert("allowed".to_owned(), json!(answer.is_allowed));
            if let Some(reason) = &answer.reason {
                body.insert("reason".to_owned(), json!(reason));
            }
            if answer.is_for_tool {
                body.insert("for_tool".to_owned(), json!(true));
            }
            let position = recorder.start(conversation_id);
            recorder.finish_step(position, StepKind::Approval, body, &["call", "allowed", "for_tool"]);
        }
    }

    /// Notes a question to the model. Returns `None` if nothing is recorded or replayed.
    pub(crate) fn begin(&self, view: &View<'_>, options: &ModelOptions) -> Option<TapedTurn> {
        let state = self.0.as_ref()?;
        let position = state.recorder.as_ref().map(|it| it.start(view.conversation_id));
        let mut conversations = state.conversations();
        let conversation = conversations.entry(view.conversation_id.to_owned()).or_default();
        let mut messages: Vec<Value> = Vec::new();
        if !view.instructions.is_empty() {
            messages.push(json!({ "role": "system", "text": view.instructions }));
        }
        messages.extend(view.messages.iter().map(|it| message_json(it, &mut conversation.calls)));
        let hashes: Vec<String> = messages.iter().map(json_digest).collect();
        let continues = hashes.starts_with(&conversation.messages);
        let new = if continues { messages.split_off(conversation.messages.len()) } else { messages };
        conversation.messages = hashes;
        let mut body = Map::new();
        body.insert("messages".to_owned(), new.into());
        body.insert("model".to_owned(), json!(options.native_key()));
        body.insert("params".to_owned(), params_json(options, view.tool_choice));
        body.insert(
            "tools".to_owned(),
            json!(format!("sha256-{}", json_digest(&view.tools.to_sorted_json()))),
        );
        if !continues {
            // The view was trimmed or summed up, so it no longer begins like that of the last turn.
            body.insert("restart".to_owned(), json!(true));
        }
        Some(TapedTurn { conversation_id: view.conversation_id.to_owned(), position, body })
    }

    /// Returns the recorded answer to a question, or `None` if the provider has to be asked.
    pub(crate) fn replay(&self, turn: &TapedTurn, ids: &mut CallIds) -> Option<Result<Answer, Trouble>> {
        let player = self.0.as_ref()?.player.as_ref()?;
        let recorded = match player.play_turn(&turn.conversation_id, &turn.body) {
            Ok(recorded) => &recorded.body,
            Err(why) => return Some(Err(Trouble::NotRecorded(why))),
        };
        if let Some(fault) = recorded.get("fault") {
            return Some(Err(read_trouble(fault)));
        }
        let answer = recorded.get("response").and_then(|it| read_response(it, ids));
        Some(answer.ok_or_else(|| Trouble::NotRecorded("the recorded answer is invalid".to_owned())))
    }

    /// Records the answer to a question.
    pub(crate) fn finish(&self, turn: TapedTurn, answer: &Result<Answer, Trouble>) {
        let Some(state) = &self.0 else { return };
        let TapedTurn { conversation_id, position, mut body } = turn;
        match answer {
            Ok(answer) => {
                let mut conversations = state.conversations();
                let conversation = conversations.entry(conversation_id).or_default();
                body.insert("response".to_owned(), response_json(answer, &mut conversation.calls));
                let message = AnswerMessage { parts: answer.parts.clone(), model: String::new() };
                let message = message_json(&Message::Answer(message), &mut conversation.calls);
                conversation.messages.push(json_digest(&message));
            }
            // What is not recorded is no answer, and the recording would hold a wrong one.
            Err(Trouble::NotRecorded(_)) => return,
            Err(trouble) => _ = body.insert("fault".to_owned(), trouble_json(trouble)),
        }
        if let (Some(recorder), Some(position)) = (&state.recorder, position) {
            recorder.finish_step(position, StepKind::Model, body, &OWN_MEMBERS);
        }
    }

    fn recorder(&self) -> Option<&Arc<Recorder>> {
        self.0.as_ref()?.recorder.as_ref()
    }
}

impl TapeState {
    fn conversations(&self) -> MutexGuard<'_, HashMap<String, TapedConversation>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the options of a question that are set.
fn params_json(options: &ModelOptions, tool_choice: ToolChoice<'_>) -> Value {
    let ModelOptions { temperature, top_p, max_tokens, reasoning, .. } = options;
    let mut params = Map::new();
    let set = [
        ("temperature", temperature.map(Value::from)),
        ("top_p", top_p.map(Value::from)),
        ("max_tokens", max_tokens.map(Value::from)),
        ("reasoning", reasoning.map(|it| it.as_str().into())),
        (
            "tool_choice",
            match tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::Forbidden => Some("none".into()),
                ToolChoice::Required(name) => Some(name.into()),
            },
        ),
    ];
    for (key, value) in set {
        if let Some(value) = value {
            params.insert(key.to_owned(), value);
        }
    }
    params.into()
}
