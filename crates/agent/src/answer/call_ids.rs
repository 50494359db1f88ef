//! Ids of tool calls, unique in a run.

use crate::message::{AnswerPart, Message};
use std::collections::HashSet;

/// Maximum length of an id that a provider chose, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Ids of the tool calls of one run. Replaces ids that are missing, repeated or too long by `c_{run}_{n}`.
#[derive(Clone, Debug)]
pub struct CallIds {
    run: String,
    next: u64,
    used: HashSet<String>,
}

impl CallIds {
    /// Creates the ids for a run.
    pub fn new(run: impl Into<String>) -> CallIds {
        CallIds { run: run.into(), next: 1, used: HashSet::new() }
    }

    /// Creates the ids for a run that continues a conversation. Ids of earlier calls are not used again.
    pub(crate) fn after(run: &str, history: &[Message]) -> CallIds {
        let answers = history.iter().filter_map(|it| match it {
            Message::Answer(answer) => Some(answer),
            Message::User(_) | Message::Result(_) => None,
        });
        let ids = answers.flat_map(|it| &it.parts).filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call.id.clone()),
            AnswerPart::Text { .. } | AnswerPart::Reasoning { .. } => None,
        });
        CallIds { used: ids.collect(), ..CallIds::new(run) }
    }

    /// Returns the id if it can be used, or a new one.
    pub(crate) fn assign(&mut self, id: Option<String>) -> String {
        let usable = id.filter(|id| !id.trim().is_empty() && id.len() <= MAX_ID_BYTES);
        match usable {
            Some(id) if self.used.insert(id.clone()) => id,
            _ => self.new_id(),
        }
    }

    fn new_id(&mut self) -> String {
        loop {
            let id = format!("c_{}_{}", self.run, self.next);
            self.next += 1;
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }
}
