//! Adds the attachments to the message of a run, and stores what the model is not shown: long texts, old results, and
//! blocks such as audio. The model gets handles that it can read and pass on.

use super::{RunDriver, VIA};
use crate::{
    agent::{Agent, RunRequest},
    attachment::{Attachment, too_long},
    context::room_of,
    estimate::{estimate_message, estimate_tokens},
    message::{Content, Message},
    result_blocks::has_hidden_blocks,
    toolbox::tool_budget,
};
use wharf_config::ResultSettings;
use wharf_runtime::{
    CallRecord, Outcome,
    result_handle::{Document, DocumentKind, NewResult, NewText, ResultOwner, URI_PREFIX as RESULT_URI},
};

impl Agent {
    /// Moves the attachments into the message. Returns a line about each one that is stored.
    pub(super) async fn attach(&self, request: &mut RunRequest) -> Vec<String> {
        let attachments = std::mem::take(&mut request.attachments);
        let to_store = match self.tools.has_handles_for(VIA) {
            true if !attachments.is_empty() => too_long(&attachments, self.attachment_room(request)),
            _ => Vec::new(),
        };
        let mut notes = Vec::new();
        for (at, attachment) in attachments.iter().enumerate() {
            let preview = match to_store.contains(&at) {
                true => self.store_attachment(attachment, request).await,
                false => None,
            };
            if preview.is_some() {
                notes.push(format!(
                    "{} is too long for the context window, so it is stored",
                    attachment.title
                ));
            }
            request.message.push(preview.map_or_else(|| attachment.shown(), Content::Text));
        }
        notes
    }

    /// Returns the tokens that attachments may take: half of the room, or what the conversation leaves of it before it
    /// has to be trimmed.
    fn attachment_room(&self, request: &RunRequest) -> u64 {
        let options = self.model.options();
        let room = room_of(options.context_window, options.max_tokens);
        let history = request.history.visible_messages().chain(&request.earlier).map(estimate_message);
        let message = estimate_message(&Message::User(request.message.clone()));
        let tools = tool_budget(&request.settings.context, options.context_window);
        let taken = history.sum::<u64>() + message + estimate_tokens(&request.instructions) + tools;
        (room.saturating_mul(6) / 10).saturating_sub(taken).min(room / 2)
    }

    /// Stores a result with blocks that the model is not shown. Returns the handle of the result, if it is stored.
    pub(super) async fn store_hidden_blocks(&self, record: &CallRecord) -> Option<String> {
        if let Some(handle) = &record.handle {
            return Some(handle.stored.as_ref()?.short_id().to_owned());
        }
        let Outcome::Answered(result) = &record.outcome else { return None };
        let is_needed = has_hidden_blocks(result, self.model.options().images);
        let results = self.tools.results().filter(|_| is_needed && self.tools.has_handles_for(VIA))?;
        let blocks = record.redacted(&result.member("content")?);
        let new = NewResult {
            owner: ResultOwner {
                principal: record.principal.clone().unwrap_or_default(),
                conversation: record.thread_id.as_deref().map(Into::into),
            },
            request_id: record.request_id.clone(),
            source: record.source.clone().unwrap_or_default(),
            tool: record.wire_name.clone().unwrap_or_default(),
            document: Document { kind: DocumentKind::Blocks, text: blocks.as_str().into() },
            keep: ResultSettings::default().keep,
        };
        let stored = results.store.put(new).await.ok()?;
        Some(stored.short_id().to_owned())
    }

    /// Stores a text. Returns what the model gets instead, or `None` if it cannot be stored.
    async fn store_attachment(&self, attachment: &Attachment, request: &RunRequest) -> Option<String> {
        let new = NewText {
            owner: ResultOwner {
                principal: request.principal.clone().unwrap_or_default(),
                conversation: Some(request.conversation_id.as_str().into()),
            },
            request_id: request.run_id.as_str().into(),
            source: attachment.source.as_deref().unwrap_or_default().into(),
            name: attachment.title.as_str().into(),
            text: self.redactor.redact(attachment.long_text()?),
        };
        let stored = self.tools.results()?.store_text(new).await.ok()?;
        Some(stored.preview)
    }
}

impl RunDriver<'_> {
    /// Stores the results that the model no longer sees, so that it can read them again.
    pub(super) async fn store_left_out(&mut self) {
        let left_out = self.state.take_left_out();
        let Some(results) = self.agent.tools.results().filter(|_| self.agent.tools.has_handles_for(VIA))
        else {
            return;
        };
        for result in left_out {
            let principal = self.on_behalf_of.principal.clone().unwrap_or_default();
            let conversation = Some(self.conversation_id.as_str().into());
            let new = NewText {
                owner: ResultOwner { principal, conversation },
                request_id: result.call_id.as_str().into(),
                source: "".into(),
                name: result.name.as_str().into(),
                text: result.text(),
            };
            if let Ok(stored) = results.store_text(new).await {
                self.state.stored(&result.call_id, stored.id);
            }
        }
    }
}

/// Returns whether the user was shown a handle of a stored text.
pub(super) fn mentions_results<'a>(messages: impl Iterator<Item = &'a [Content]>) -> bool {
    let is_handle = |content: &Content| matches!(content, Content::Text(text) if text.contains(RESULT_URI));
    messages.flatten().any(is_handle)
}
