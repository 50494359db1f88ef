//! Streams in the form that the providers document.

use super::check;
use crate::dialect::Dialect;

#[test]
fn documented_streams_are_read() {
    let expected =
        r#""I'll check the current weather in Paris for you." call_1:get_weather({"city": "Paris"}) "#;
    for (dialect, body, finish) in [
        (Dialect::Responses, include_str!("fixtures/responses.sse"), "Stop"),
        (Dialect::Chat, include_str!("fixtures/chat.sse"), "ToolCalls"),
        (Dialect::Anthropic, include_str!("fixtures/anthropic.sse"), "ToolCalls"),
        (Dialect::Gemini, include_str!("fixtures/gemini.sse"), "Stop"),
        (Dialect::Ollama, include_str!("fixtures/ollama.jsonl"), "Stop"),
    ] {
        check(dialect, "documented", body, &format!("{expected}{finish}"));
    }
}
