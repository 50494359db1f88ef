//! Applies an answer of the model, or an error in its place, to a run.

use super::{MAX_REFUSED_TOOLS, RunPhase, RunState, turn::Turn};
use crate::{
    answer::Answer,
    dialect::FinishReason,
    entry::{Entry, EntryBody},
    message::{AnswerMessage, AnswerPart, Content, Message},
    model::trouble::{ProviderError, ProviderErrorKind, Trouble},
    run_ending::{LimitKind, RunError},
};

/// Words after an answer that was cut off with calls in it.
const CUT_OFF: &str =
    "Your answer reached the maximum length, so its tool calls were not made. Answer more briefly.";
/// Words that ask for the structured answer.
const STRUCTURE: &str = "Return the final answer by calling the tool `wharf__answer`.";

impl RunState {
    /// Reports the answer to [`super::NextStep::Ask`], or the error after all retries.
    pub(crate) fn answered(&mut self, answer: Result<Answer, Trouble>) {
        if !matches!(self.phase, RunPhase::Asking) {
            return;
        }
        match answer {
            Ok(answer) => self.use_answer(answer),
            Err(trouble) => self.use_trouble(trouble),
        }
    }

    fn use_answer(&mut self, answer: Answer) {
        self.progress.turns += 1;
        self.progress.has_summed_up = false;
        self.add_usage(&answer);
        let text = answer.text();
        if !text.trim().is_empty() || answer.calls().next().is_none() {
            self.progress.final_output = text;
        }
        self.append_answer(&answer);
        match answer.finish {
            FinishReason::Filtered | FinishReason::Refused => self.end(RunError::Refused(answer.finish)),
            FinishReason::Length => self.use_cut_answer(&answer),
            FinishReason::Stop | FinishReason::ToolCalls => self.use_whole_answer(answer),
        }
    }

    /// Appends an answer, unless it has nothing that a provider would accept back.
    fn append_answer(&mut self, answer: &Answer) {
        let is_content = |part: &AnswerPart| match part {
            AnswerPart::Text { text, .. } => !text.is_empty(),
            AnswerPart::Reasoning { .. } => false,
            AnswerPart::Call(_) => true,
        };
        if answer.parts.iter().any(is_content) {
            let message = AnswerMessage { parts: answer.parts.clone(), model: self.model_key.clone() };
            let entry = EntryBody::Answer { message: message.clone(), usage: answer.usage };
            self.entries.push(Entry::of(entry));
            self.view.push(Message::Answer(message));
        }
    }

    fn use_cut_answer(&mut self, answer: &Answer) {
        if answer.dropped_calls == 0 || self.progress.has_reported_length || self.progress.limit.is_some() {
            return self.end(RunError::Limit(self.progress.limit.unwrap_or(LimitKind::AnswerLength)));
        }
        self.progress.has_reported_length = true;
        self.tell(CUT_OFF.to_owned());
    }

    fn use_whole_answer(&mut self, answer: Answer) {
        let calls: Vec<_> = answer.calls().cloned().collect();
        if calls.is_empty() {
            return self.finish_without_calls();
        }
        let slots = self.plan_calls(calls);
        self.phase = RunPhase::Turn(Turn { slots });
        self.announce_calls();
        self.end_turn_if_settled();
    }

    fn finish_without_calls(&mut self) {
        if self.toolbox.has_answer_tool() {
            if self.progress.must_structure || self.progress.limit.is_some() {
                return self.end(RunError::OutputInvalid("the model returned text instead".to_owned()));
            }
            self.progress.must_structure = true;
            return self.tell(STRUCTURE.to_owned());
        }
        match self.progress.limit {
            Some(limit) => self.end(RunError::Limit(limit)),
            None => self.phase = RunPhase::Ended,
        }
    }

    fn use_trouble(&mut self, trouble: Trouble) {
        let kind = match &trouble {
            Trouble::Provider(ProviderError { kind, .. }) => Some(kind.clone()),
            _ => None,
        };
        match kind {
            Some(ProviderErrorKind::TooLong { window }) => {
                if self.progress.shrunk_window.is_some() {
                    return self.end(RunError::ContextFull(self.view.window()));
                }
                self.view.shrink(window);
                let window = self.view.window();
                self.progress.shrunk_window = Some(window);
                self.report_context(format!("the context window is {window} tokens"));
            }
            Some(ProviderErrorKind::ToolRefused { index }) if self.refused_tools < MAX_REFUSED_TOOLS => {
                let Some(tool) = self.toolbox.leave_out(index) else { return self.end(trouble.into()) };
                self.refused_tools += 1;
                let name = tool.name();
                self.report_context(format!(
                    "the tool {name} is left out, because the provider refuses it: {trouble}"
                ));
                self.newly_refused.push(tool);
            }
            _ => self.end(trouble.into()),
        }
    }

    /// Appends a message in the place of the user.
    pub(super) fn tell(&mut self, words: String) {
        self.entries.push(Entry::of(EntryBody::Notice { notice: words.clone() }));
        self.view.push(Message::User(vec![Content::Text(words)]));
    }
}
