//! Finds the recorded call for a new one: same source, same tool, same arguments without the ignored parts.

use super::{
    Cassette, MESSAGES_KEY, Miss, Placeholders, RecordedCall, RecordedOutcome, RecordedStep, StepKind,
    canonical, conversation_names::ConversationNames, nearest::differences,
};
use crate::cassette::ConversationNaming;
use serde_json::{Map, Value};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use wharf_config::Glob;

/// Members of a model turn that must be equal in a replay.
const COMPARED_IN_TURNS: [&str; 3] = [MESSAGES_KEY, "restart", "tools"];

/// Maximum number of differences that a turn shows.
const MAX_TURN_DIFFERENCES: usize = 5;

/// Answers calls from a recording. The k-th equal call gets the k-th answer.
#[derive(Debug)]
pub struct CassettePlayer {
    name: String,
    cassette: Cassette,
    ignore: Vec<(Glob, Vec<String>)>,
    exhausted: Exhausted,
    placeholders: Placeholders,
    /// Recorded calls by what they are matched by.
    calls: HashMap<String, Vec<usize>>,
    state: Mutex<PlayerState>,
}

#[derive(Debug)]
struct PlayerState {
    /// Number of answers given so far, by what calls are matched by.
    played: HashMap<String, usize>,
    /// Number of steps played so far, by kind and conversation.
    steps: HashMap<(&'static str, String), usize>,
    conversations: ConversationNames,
    /// Questions of the calls played so far, by what calls are matched by.
    asked: HashMap<String, VecDeque<Vec<Value>>>,
    misses: usize,
}

/// Answer to a call after the last recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// Fail.
    Miss,
    /// Repeat the last answer.
    Repeat,
}

impl CassettePlayer {
    /// Creates a player.
    pub fn new(cassette: Cassette, exhausted: Exhausted) -> CassettePlayer {
        let ignore =
            cassette.ignore.iter().map(|(glob, pointers)| (Glob::new(glob), pointers.clone())).collect();
        let mut player = CassettePlayer {
            name: "the recording".to_owned(),
            cassette,
            ignore,
            exhausted,
            placeholders: Placeholders::default(),
            calls: HashMap::new(),
            state: Mutex::new(PlayerState {
                played: HashMap::new(),
                steps: HashMap::new(),
                conversations: ConversationNames::new(ConversationNaming::Main),
                asked: HashMap::new(),
                misses: 0,
            }),
        };
        for at in 0..player.cassette.calls.len() {
            let call = &player.cassette.calls[at];
            let key = player.key(&call.source, &call.tool, &call.arguments);
            player.calls.entry(key).or_default().push(at);
        }
        player
    }

    /// Sets the name of the recording for messages, and how its conversations are named.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>, naming: ConversationNaming) -> CassettePlayer {
        self.name = name.into();
        self.state().conversations = ConversationNames::new(naming);
        self
    }

    /// Replaces secrets in arguments before they are matched, as the recorder did. So a replay works with another token.
    #[must_use]
    pub fn with_placeholders(mut self, placeholders: Placeholders) -> CassettePlayer {
        self.placeholders = placeholders;
        self
    }

    /// Returns the name of the recording.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the recording.
    pub fn cassette(&self) -> &Cassette {
        &self.cassette
    }

    /// Returns the number of calls and steps that were asked for and are not recorded.
    pub fn misses(&self) -> usize {
        self.state().misses
    }

    /// Returns the outcome of a call.
    pub fn play(&self, source: &str, tool: &str, arguments: &Value) -> Result<&RecordedOutcome, Miss> {
        let mut arguments = arguments.clone();
        self.placeholders.mask(&mut arguments);
        let key = self.key(source, tool, &arguments);
        let known = self.calls.get(&key).map(Vec::as_slice).unwrap_or_default();
        let mut state = self.state();
        let count = state.played.entry(key.clone()).or_default();
        let at = match (known.get(*count), self.exhausted) {
            (Some(at), _) => Some(at),
            (None, Exhausted::Repeat) => known.last(),
            (None, Exhausted::Miss) => None,
        };
        match at {
            Some(at) => {
                *count += 1;
                let call = &self.cassette.calls[*at];
                if !call.asked.is_empty() {
                    state.asked.entry(key).or_default().push_back(call.asked.clone());
                }
                Ok(&call.outcome)
            }
            None => {
                state.misses += 1;
                let same = |it: &&RecordedCall| it.source == source && it.tool == tool;
                let compared = |it: &Value| self.without_ignored(source, tool, it);
                let recorded = self.cassette.calls.iter().filter(same);
                let recorded = recorded.map(|it| (it.line, compared(&it.arguments)));
                Err(Miss::of(&compared(&arguments), recorded))
            }
        }
    }

    /// Returns what the server asked during the call that the next equal one gets the answer of.
    pub fn next_asked(&self, source: &str, tool: &str, arguments: &Value) -> &[Value] {
        let mut arguments = arguments.clone();
        self.placeholders.mask(&mut arguments);
        let key = self.key(source, tool, &arguments);
        let known = self.calls.get(&key).map(Vec::as_slice).unwrap_or_default();
        let played = self.state().played.get(&key).copied().unwrap_or_default();
        let at = known.get(played).or(known.last().filter(|_| self.exhausted == Exhausted::Repeat));
        at.map(|at| self.cassette.calls[*at].asked.as_slice()).unwrap_or_default()
    }

    /// Takes what the server asked during a call that has been played.
    pub(super) fn take_asked(&self, source: &str, tool: &str, arguments: &Value) -> Vec<Value> {
        let mut arguments = arguments.clone();
        self.placeholders.mask(&mut arguments);
        let key = self.key(source, tool, &arguments);
        self.state().asked.get_mut(&key).and_then(VecDeque::pop_front).unwrap_or_default()
    }

    /// Returns the next turn of the model in a conversation. The error says how the question differs from the recorded
    /// one, or that there is none.
    pub fn play_turn(&self, conversation: &str, asked: &Map<String, Value>) -> Result<&RecordedStep, String> {
        let mut asked = Value::Object(asked.clone());
        if let Some(messages) = asked.get_mut(MESSAGES_KEY) {
            self.placeholders.mask_messages(messages);
        }
        let (conversation, at) = self.count_step(StepKind::Model, conversation);
        let turn = self.nth_step(StepKind::Model, &conversation, at);
        let Some(turn) = turn else {
            self.state().misses += 1;
            return Err(format!("turn {} of the model is not in {}", at + 1, self.name));
        };
        let mut found = Vec::new();
        for key in COMPARED_IN_TURNS {
            let (asked, recorded) = (&asked[key], turn.body.get(key).unwrap_or(&Value::Null));
            found.extend(differences(asked, recorded).into_iter().map(|it| format!("/{key}{it}")));
        }
        if found.is_empty() {
            return Ok(turn);
        }
        self.state().misses += 1;
        let line = turn.line;
        let shown = found.iter().take(MAX_TURN_DIFFERENCES);
        let lines: String = shown.map(|it| format!("\n  nearest: line {line}     {it}")).collect();
        Err(format!("the model is asked something else in turn {} than in {}{lines}", at + 1, self.name))
    }

    /// Returns the next recorded decision about a call in a conversation.
    pub fn play_approval(&self, conversation: &str) -> Option<&RecordedStep> {
        let (conversation, at) = self.count_step(StepKind::Approval, conversation);
        self.nth_step(StepKind::Approval, &conversation, at)
    }

    /// Returns the outcome of a prompt or resource: a step of this kind with the members of `request`. The k-th equal
    /// request gets the k-th answer.
    pub fn play_request(&self, kind: StepKind, request: &Map<String, Value>) -> Option<RecordedOutcome> {
        let mut request = Value::Object(request.clone());
        self.placeholders.mask(&mut request);
        let is_equal = |step: &&RecordedStep| {
            let asked = request.as_object().into_iter().flatten();
            asked.into_iter().all(|(key, value)| step.body.get(key) == Some(value))
        };
        let known: Vec<&RecordedStep> = self.cassette.steps_of(kind).filter(is_equal).collect();
        let mut state = self.state();
        let count = state.played.entry(format!("{} {}", kind.as_str(), canonical(&request))).or_default();
        let step = match (known.get(*count), self.exhausted) {
            (Some(step), _) => Some(*step),
            (None, Exhausted::Repeat) => known.last().copied(),
            (None, Exhausted::Miss) => None,
        };
        *count += usize::from(step.is_some());
        state.misses += usize::from(step.is_none());
        let body = &step?.body;
        let result = body.get("result").cloned().map(RecordedOutcome::Result);
        result.or_else(|| body.get("fault").cloned().map(RecordedOutcome::Fault))
    }

    fn count_step(&self, kind: StepKind, conversation: &str) -> (String, usize) {
        let mut state = self.state();
        let conversation = state.conversations.name(conversation);
        let count = state.steps.entry((kind.as_str(), conversation.clone())).or_default();
        *count += 1;
        (conversation, *count - 1)
    }

    fn nth_step(&self, kind: StepKind, conversation: &str, at: usize) -> Option<&RecordedStep> {
        self.cassette.steps_of(kind).filter(|it| it.conversation == conversation).nth(at)
    }

    /// Returns the lines of the calls and model turns that have not been played.
    pub fn unplayed(&self) -> Vec<usize> {
        let state = self.state();
        let mut lines: Vec<usize> = Vec::new();
        for (key, calls) in &self.calls {
            let played = state.played.get(key).copied().unwrap_or_default();
            lines.extend(calls.iter().skip(played).map(|at| self.cassette.calls[*at].line));
        }
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for turn in self.cassette.steps_of(StepKind::Model) {
            let before = seen.entry(&turn.conversation).or_default();
            let key = (StepKind::Model.as_str(), turn.conversation.clone());
            if *before >= state.steps.get(&key).copied().unwrap_or_default() {
                lines.push(turn.line);
            }
            *before += 1;
        }
        lines.sort_unstable();
        lines
    }

    fn key(&self, source: &str, tool: &str, arguments: &Value) -> String {
        format!("{source}:{tool} {}", canonical(&self.without_ignored(source, tool, arguments)))
    }

    /// Returns the arguments without what `record.ignore` leaves out for this tool.
    fn without_ignored(&self, source: &str, tool: &str, arguments: &Value) -> Value {
        let id = format!("{source}:{tool}");
        let mut arguments = arguments.clone();
        let pointers = self.ignore.iter().filter(|(glob, _)| glob.matches(&id)).flat_map(|(_, it)| it);
        pointers.for_each(|it| remove_pointer(&mut arguments, it));
        arguments
    }

    fn state(&self) -> MutexGuard<'_, PlayerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the value at a JSON pointer.
pub fn remove_pointer(value: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    let last = last.replace("~1", "/").replace("~0", "~");
    if let Some(members) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        members.shift_remove(&last);
    }
}
