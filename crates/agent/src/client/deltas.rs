//! Redacts the text of an answer while it arrives. A provider has seen its key, so its model may repeat it.

use crate::{
    answer::{Answer, AnswerEvent},
    message::AnswerPart,
};
use wharf_runtime::{Redactor, StreamRedactor};

/// Redacts text and reasoning, each as one stream.
pub(super) struct DeltaRedactor<'a> {
    text: StreamRedactor<'a>,
    reasoning: StreamRedactor<'a>,
}

impl<'a> DeltaRedactor<'a> {
    pub(super) fn new(redactor: &'a Redactor) -> DeltaRedactor<'a> {
        DeltaRedactor { text: StreamRedactor::new(redactor), reasoning: StreamRedactor::new(redactor) }
    }

    /// Returns the events of a whole answer.
    pub(super) fn whole(redactor: &'a Redactor, answer: &Answer) -> Vec<AnswerEvent> {
        let mut deltas = DeltaRedactor::new(redactor);
        let events = answer.parts.iter().filter_map(|part| match part {
            AnswerPart::Text { text, .. } => Some(AnswerEvent::Text(text.clone())),
            AnswerPart::Reasoning { text, .. } => Some(AnswerEvent::Reasoning(text.clone())),
            AnswerPart::Call(_) => None,
        });
        let mut shown: Vec<AnswerEvent> = events.filter_map(|it| deltas.push(it)).collect();
        shown.extend(deltas.finish());
        shown
    }

    /// Returns what may be shown of this event and of those that were held back.
    pub(super) fn push(&mut self, event: AnswerEvent) -> Option<AnswerEvent> {
        non_empty(match event {
            AnswerEvent::Text(text) => AnswerEvent::Text(self.text.push(&text)),
            AnswerEvent::Reasoning(text) => AnswerEvent::Reasoning(self.reasoning.push(&text)),
        })
    }

    /// Returns the rest at the end of the answer.
    pub(super) fn finish(mut self) -> impl Iterator<Item = AnswerEvent> {
        let rest = [AnswerEvent::Reasoning(self.reasoning.finish()), AnswerEvent::Text(self.text.finish())];
        rest.into_iter().filter_map(non_empty)
    }
}

fn non_empty(event: AnswerEvent) -> Option<AnswerEvent> {
    let (AnswerEvent::Text(text) | AnswerEvent::Reasoning(text)) = &event;
    (!text.is_empty()).then_some(event)
}
