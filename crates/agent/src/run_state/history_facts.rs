//! Reads from earlier runs of a conversation what the next one must know.

use crate::{
    digest::call_digest,
    message::{AnswerPart, Message, ToolCall, ToolResult},
    result_text::{NO_SUCH_TOOL, UNKNOWN_FATE},
    toolbox::Toolbox,
};
use std::collections::{HashMap, HashSet};
use wharf_runtime::{own_tool::is_own_tool, tool_search::CALL_TOOL};

/// Facts about the calls of earlier runs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HistoryFacts {
    /// Digests of calls that may have been executed.
    pub(super) unknown_fates: HashSet<String>,
    /// Whether the conversation contains a result of an open-world source.
    pub(super) has_seen_untrusted: bool,
}

impl HistoryFacts {
    /// Reads the facts from the messages of a conversation.
    pub(super) fn of(history: &[Message], toolbox: &Toolbox, conversation_id: &str) -> HistoryFacts {
        let mut facts = HistoryFacts::default();
        let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
        for message in history {
            match message {
                Message::User(_) => {}
                Message::Answer(answer) => calls.extend(answer.parts.iter().filter_map(|part| match part {
                    AnswerPart::Call(call) => Some((call.id.as_str(), call)),
                    AnswerPart::Text { .. } | AnswerPart::Reasoning { .. } => None,
                })),
                Message::Result(result) => {
                    let call =
                        calls.get(result.call_id.as_str()).map(|it| toolbox.inner_call((*it).clone()).0);
                    let name = call.as_ref().map_or(&result.name, |it| &it.name);
                    let tool = toolbox.find(name);
                    facts.has_seen_untrusted |=
                        tool.map_or_else(|| may_be_untrusted(name, result), |it| it.is_open_world);
                    let Some(call) = call else { continue };
                    if result.is_error && result.text().starts_with(UNKNOWN_FATE) {
                        let tool_id = tool.map_or(call.name.as_str(), |it| it.id.as_str());
                        let definition_hash = tool.map_or("", |it| it.definition_hash.as_str());
                        let arguments = call.checked_arguments().unwrap_or(&call.arguments);
                        facts.unknown_fates.insert(call_digest(
                            tool_id,
                            definition_hash,
                            arguments,
                            conversation_id,
                        ));
                    }
                }
            }
        }
        facts
    }
}

/// Returns whether the result of a tool that is not there may be content of an open-world source, such as one that is gone
/// since. A tool that never existed has no content.
fn may_be_untrusted(name: &str, result: &ToolResult) -> bool {
    let is_foreign = !is_own_tool(name) || name == CALL_TOOL;
    is_foreign && !result.text().starts_with(NO_SUCH_TOOL)
}
