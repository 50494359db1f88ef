//! Renders answers in each dialect with the scripted model.

use crate::dialect::Dialect;
pub(super) use scripted_model::{Step, call, chat_delta, chat_end, sse, text};
use scripted_model::{Wire, render as render_wire};

pub(super) fn render(dialect: Dialect, steps: &[Step]) -> String {
    render_wire(wire(dialect), steps)
}

pub(super) fn wire(dialect: Dialect) -> Wire {
    match dialect {
        Dialect::Responses => Wire::Responses,
        Dialect::Chat => Wire::Chat,
        Dialect::Anthropic => Wire::Anthropic,
        Dialect::Gemini => Wire::Gemini,
        Dialect::Ollama => Wire::Ollama,
    }
}
