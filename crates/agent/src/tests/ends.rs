//! How an answer ends: it is over when the provider says so.

use super::{
    check, read,
    script::{Step, call, chat_delta, chat_end, render, sse, text},
    summary,
};
use crate::{dialect::Dialect, model::trouble::Trouble};
use scripted_model::Finish::*;
use serde_json::json;

#[test]
fn a_stream_without_an_end_is_cut() {
    for dialect in Dialect::ALL {
        let whole = render(dialect, &[text("a"), call("x", "f", r#"{"a":"b"}"#), Step::End(Stop)]);
        let unfinished = render(dialect, &[text("a"), call("x", "f", r#"{"a":"b"}"#)]);
        check(dialect, "clean end after a call", &unfinished, "Cut");
        check(dialect, "clean end after text", render(dialect, &[text("a")]), "Cut");
        check(dialect, "no bytes", "", "Cut");
        for length in 1..unfinished.len() {
            check(dialect, "cut anywhere", &whole[..length], "Cut");
        }
        if dialect != Dialect::Ollama {
            check(dialect, "only [DONE]", "data: [DONE]\n\n", "Cut");
            check(dialect, "[DONE] after text", unfinished + "data: [DONE]\n\n", "Cut");
        }
    }
}

#[test]
fn the_last_line_break_is_not_needed() {
    for dialect in Dialect::ALL {
        let whole = render(dialect, &[text("a"), Step::End(Stop)]);
        check(dialect, "no final line break", whole.trim_end(), r#""a" Stop"#);
    }
}

#[test]
fn what_follows_a_complete_answer_cannot_spoil_it() {
    for dialect in Dialect::ALL {
        let whole = render(dialect, &[text("a"), Step::End(Stop)]);
        check(dialect, "a cut event", whole.clone() + "data: {\"cho", r#""a" Stop"#);
        if !matches!(dialect, Dialect::Chat | Dialect::Gemini) {
            check(dialect, "garbage", whole + "\n\ngarbage\n\ndata: garbage\n\n", r#""a" Stop"#);
        }
    }
    let after_done =
        chat_delta(json!({ "content": "a" })) + &chat_end("stop") + "data: [DONE]\n\ndata: x\n\n";
    check(Dialect::Chat, "garbage after [DONE]", after_done, r#""a" Stop"#);
}

#[test]
fn an_answer_with_neither_text_nor_calls_is_empty() {
    for dialect in Dialect::ALL {
        check(dialect, "nothing", render(dialect, &[Step::End(Stop)]), "Empty");
        check(dialect, "blank", render(dialect, &[text(" \n"), Step::End(Stop)]), "Empty");
        let thought = render(dialect, &[Step::Think("Hm.".into()), Step::End(Stop)]);
        check(dialect, "only reasoning", thought, "Empty");
    }
    check(Dialect::Chat, "empty choices", sse(json!({ "choices": [] })), "Cut");
    check(Dialect::Chat, "null choices", sse(json!({ "choices": null })), "Cut");
}

#[test]
fn a_success_that_is_no_event_stream_shows_its_beginning() {
    let page = format!("<!DOCTYPE html>\n<html>{}</html>", "x".repeat(500));
    let rows = [
        ("HTML", page.as_str(), &page[..200]),
        ("HTML in one line", "<html>no</html>", "<html>no</html>"),
        ("plain text", "upstream error", "upstream error"),
        ("array", "[{\n", "[{ "),
    ];
    for dialect in Dialect::ALL {
        for (row, body, beginning) in rows {
            let result = read(dialect, body.as_bytes());
            let shown = beginning.replace('\n', " ");
            assert_eq!(result.answer, Err(Trouble::NotEvents(shown)), "{row} in {dialect:?}");
        }
    }
    let json_body = "{\n  \"id\": \"x\",\n  \"choices\": []\n}";
    for dialect in Dialect::ALL.into_iter().filter(|it| *it != Dialect::Ollama) {
        let result = read(dialect, json_body.as_bytes());
        assert!(summary(&result).starts_with(r#"NotEvents("{   \"id\""#), "{}", summary(&result));
    }
}

#[test]
fn finish_words_have_one_meaning() {
    let chat = [
        ("stop", "Stop"),
        ("tool_calls", "ToolCalls"),
        ("eos", "Stop"),
        ("length", "Length"),
        ("model_length", "Length"),
        ("content_filter", "Filtered"),
        ("error", "Server"),
    ];
    for (word, finish) in chat {
        let expected = if finish == "Server" { finish.into() } else { format!(r#""a" {finish}"#) };
        check(Dialect::Chat, word, chat_delta(json!({ "content": "a" })) + &chat_end(word), &expected);
    }
    let gemini = [
        ("STOP", r#""a" Stop"#),
        ("MAX_TOKENS", r#""a" Length"#),
        ("SAFETY", r#""a" Filtered"#),
        ("MALFORMED_FUNCTION_CALL", "Garbled"),
        ("FINISH_REASON_UNSPECIFIED", "Cut"),
    ];
    for (word, expected) in gemini {
        let candidate = json!({ "content": { "parts": [{ "text": "a" }] }, "finishReason": word });
        check(Dialect::Gemini, word, sse(json!({ "candidates": [candidate] })), expected);
    }
    let early_stop = sse(json!({ "type": "message_stop" }));
    check(Dialect::Anthropic, "message_stop without a stop reason", early_stop, "Cut");
    let no_stop = render(Dialect::Anthropic, &[text("a"), Step::End(Stop)]);
    let no_stop = no_stop.split("event: message_stop").next().unwrap_or_default();
    check(Dialect::Anthropic, "a stop reason without message_stop", no_stop, "Cut");
    let empty_word = chat_delta(json!({ "content": "a" })) + &chat_end("");
    check(Dialect::Chat, "an empty finish reason", empty_word, "Cut");
}

#[test]
fn filters_and_refusals_keep_the_text_that_came() {
    for (dialect, expected) in [
        (Dialect::Responses, r#""No" Filtered"#),
        (Dialect::Chat, r#""No" Filtered"#),
        (Dialect::Anthropic, r#""No" Refused"#),
        (Dialect::Gemini, r#""No" Filtered"#),
    ] {
        let steps = [text("No"), call("x", "f", "{}"), Step::End(Filtered)];
        check(dialect, "filter", render(dialect, &steps), expected);
    }
    let refusal = chat_delta(json!({ "refusal": "I cannot." })) + &chat_end("stop");
    check(Dialect::Chat, "refusal", refusal, r#""I cannot." Refused"#);
    let refusal = sse(json!({ "type": "response.refusal.delta", "delta": "I cannot." }))
        + &render(Dialect::Responses, &[Step::End(Stop)]);
    check(Dialect::Responses, "refusal", refusal, r#""I cannot." Refused"#);
    let blocked = sse(json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } }));
    check(Dialect::Gemini, "blocked prompt", blocked, "Filtered");
}
