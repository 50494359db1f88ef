//! Puts the answer of a model together from the bytes of a response, and knows whether it is whole.

mod call_assembler;
mod call_ids;

pub use call_ids::CallIds;

use crate::{
    dialect::{Delta, Dialect, EventReader, FinishReason, NativeKind, Usage},
    framing::FrameReader,
    message::{AnswerPart, ToolCall},
    model::{AnswerLimits, trouble::Trouble},
};
use call_assembler::CallAssembler;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Piece of an answer that clients receive before the answer is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerEvent {
    /// Text for the user.
    Text(String),
    /// Readable reasoning.
    Reasoning(String),
}

/// Whole answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Parts in the order of the model. Contains calls only if they may be made.
    pub parts: Vec<AnswerPart>,
    /// The reason why the answer ended.
    pub finish: FinishReason,
    /// Tokens used, if the provider reported them.
    pub usage: Option<Usage>,
    /// Number of calls that are left out because the answer ended by length, filter or refusal.
    pub dropped_calls: usize,
}

impl Answer {
    /// Returns the text for the user.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                AnswerPart::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Returns the calls to make, in the order of the model.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// Reader for the response to one request, chunk by chunk.
#[derive(Debug)]
pub struct AnswerReader {
    frames: FrameReader,
    events: EventReader,
    limits: AnswerLimits,
    bytes: usize,
    parts: Vec<OpenPart>,
    calls: CallAssembler,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
}

/// Part of an answer under construction.
#[derive(Debug)]
enum OpenPart {
    Text {
        text: String,
        native: Option<Value>,
    },
    Reasoning {
        text: String,
        native: Option<Value>,
    },
    /// Position of a call in the assembler.
    Call(usize),
}

impl AnswerReader {
    /// Creates a reader.
    pub fn new(dialect: Dialect, limits: AnswerLimits) -> AnswerReader {
        AnswerReader {
            frames: FrameReader::new(dialect.framing(), limits.event_bytes),
            events: dialect.reader(),
            bytes: 0,
            parts: Vec::new(),
            calls: CallAssembler::new(limits.calls),
            limits,
            finish: None,
            usage: None,
        }
    }

    /// Reads a chunk and adds what clients may see of it to `out`, also before an error.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<AnswerEvent>) -> Result<(), Trouble> {
        let limit = self.limits.stream_bytes;
        let (mut allowed, excess) = chunk.split_at(chunk.len().min(limit - self.bytes));
        self.bytes += allowed.len();
        while !self.is_closed()
            && let Some(event) = self.frames.next_event(&mut allowed)?
        {
            self.read_event(&event, out)?;
        }
        if excess.is_empty() || self.is_closed() {
            return Ok(());
        }
        Err(Trouble::TooMuch { what: "bytes in one answer", limit })
    }

    /// Returns whether the response said that the answer is complete. Usage may still follow until the response ends.
    pub fn is_over(&self) -> bool {
        self.events.is_over()
    }

    /// Returns whether nothing that may follow belongs to the answer, so that the caller can stop reading.
    pub fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    /// Ends the response and returns the whole answer. Missing and repeated ids of calls are replaced.
    pub fn finish(mut self, ids: &mut CallIds, out: &mut Vec<AnswerEvent>) -> Result<Answer, Trouble> {
        if !self.is_closed() {
            self.read_rest(out)?;
        }
        let Some(finish) = self.finish.filter(|_| self.is_over()) else { return Err(Trouble::Cut) };
        let mut calls = if finish.allows_calls() { self.calls.finish(ids)? } else { Vec::new() };
        let dropped_calls = self.calls.len() - calls.len();
        let parts: Vec<AnswerPart> = self
            .parts
            .into_iter()
            .filter_map(|part| match part {
                OpenPart::Text { text, native } => Some(AnswerPart::Text { text, native }),
                OpenPart::Reasoning { text, native } => Some(AnswerPart::Reasoning { text, native }),
                OpenPart::Call(at) => calls.get_mut(at)?.take().map(AnswerPart::Call),
            })
            .collect();
        let answer = Answer { parts, finish, usage: self.usage, dropped_calls };
        let is_empty =
            finish.allows_calls() && answer.calls().next().is_none() && answer.text().trim().is_empty();
        if is_empty { Err(Trouble::Empty) } else { Ok(answer) }
    }

    /// Reads an event that the end of the response left without its line break.
    fn read_rest(&mut self, out: &mut Vec<AnswerEvent>) -> Result<(), Trouble> {
        let event = match self.frames.finish() {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(()),
            // What follows a complete answer cannot spoil it.
            Err(_) if self.is_over() => return Ok(()),
            Err(trouble) => return Err(trouble),
        };
        let is_cut = serde_json::from_str::<IgnoredAny>(&event).is_err_and(|error| error.is_eof());
        match self.read_event(&event, out) {
            Err(_) if self.is_over() => Ok(()),
            Err(Trouble::Garbled(_) | Trouble::NotEvents(_)) if is_cut => Err(Trouble::Cut),
            result => result,
        }
    }

    fn read_event(&mut self, event: &str, out: &mut Vec<AnswerEvent>) -> Result<(), Trouble> {
        if event.trim().is_empty() {
            return Ok(());
        }
        for delta in self.events.read(event)? {
            self.apply(delta, out)?;
        }
        Ok(())
    }

    fn apply(&mut self, delta: Delta, out: &mut Vec<AnswerEvent>) -> Result<(), Trouble> {
        match delta {
            Delta::Text(text) => {
                self.append_text(&text);
                out.push(AnswerEvent::Text(text));
            }
            Delta::Reasoning(text) => {
                self.append_reasoning(&text);
                out.push(AnswerEvent::Reasoning(text));
            }
            Delta::Native(kind, value) => self.attach(kind, value),
            Delta::Call(fragment) => {
                if let Some(at) = self.calls.push(fragment)? {
                    self.parts.push(OpenPart::Call(at));
                }
            }
            Delta::Usage(usage) => self.usage = Some(usage),
            // The first reason counts: some servers repeat it.
            Delta::Finish(reason) => self.finish = self.finish.or(Some(reason)),
        }
        let limit = self.limits.parts;
        if self.parts.len() > limit { Err(Trouble::TooMuch { what: "parts", limit }) } else { Ok(()) }
    }

    fn append_text(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(OpenPart::Text { text, native: None }) => text.push_str(piece),
            _ => self.parts.push(OpenPart::Text { text: piece.to_owned(), native: None }),
        }
    }

    fn append_reasoning(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(OpenPart::Reasoning { text, native: None }) => text.push_str(piece),
            _ => self.parts.push(OpenPart::Reasoning { text: piece.to_owned(), native: None }),
        }
    }

    fn attach(&mut self, kind: NativeKind, value: Value) {
        match (self.parts.last_mut(), kind) {
            (Some(OpenPart::Text { native: native @ None, .. }), NativeKind::Text)
            | (Some(OpenPart::Reasoning { native: native @ None, .. }), NativeKind::Reasoning) => {
                *native = Some(value);
            }
            (_, NativeKind::Text) => {
                self.parts.push(OpenPart::Text { text: String::new(), native: Some(value) });
            }
            (_, NativeKind::Reasoning) => {
                self.parts.push(OpenPart::Reasoning { text: String::new(), native: Some(value) });
            }
        }
    }
}
