//! Sizes: nothing that a provider sends uses more memory than the limits allow.

use super::{
    check, read_chunks,
    script::{Step, render, sse, text},
    summary,
};
use crate::{
    answer::AnswerReader,
    dialect::Dialect,
    model::{AnswerLimits, trouble::Trouble},
};
use scripted_model::Finish::Stop;
use serde_json::json;

#[test]
fn an_event_without_end_fails_at_the_limit() {
    let limits = AnswerLimits { event_bytes: 1000, ..AnswerLimits::default() };
    for dialect in Dialect::ALL {
        let line = if dialect == Dialect::Ollama { "{" } else { "data: {" };
        let mut rows = vec![line.to_owned() + &"x".repeat(2000)];
        if dialect != Dialect::Ollama {
            rows.push(": ".to_owned() + &"x".repeat(2000));
            rows.push("data: xxxxxxxx\n".repeat(200));
        }
        for body in rows {
            for size in [1, 13, body.len()] {
                let result = read_chunks(dialect, &limits, body.as_bytes(), &[size]);
                let expected = Trouble::TooMuch { what: "bytes in one event", limit: 1000 };
                assert_eq!(result.answer, Err(expected), "{dialect:?} in chunks of {size}");
            }
        }
    }
}

#[test]
fn a_stream_without_end_fails_at_the_limit() {
    let limits = AnswerLimits { stream_bytes: 10_000, ..AnswerLimits::default() };
    for dialect in Dialect::ALL {
        let body = render(dialect, &[text("abc")]).repeat(1000);
        let whole = read_chunks(dialect, &limits, body.as_bytes(), &[body.len()]);
        assert_eq!(whole.answer, Err(Trouble::TooMuch { what: "bytes in one answer", limit: 10_000 }));
        assert_eq!(read_chunks(dialect, &limits, body.as_bytes(), &[17]), whole, "{dialect:?}");
    }
}

#[test]
fn a_gibibyte_without_text_fails_and_uses_no_memory() {
    for dialect in Dialect::ALL {
        let padding = " ".repeat(16 * 1024);
        // Lines of JSON have no comments.
        let line = match dialect {
            Dialect::Ollama => format!("{{\"message\":{{\"content\":\"\"}},{padding}\"done\":false}}\n"),
            _ => format!(": keep-alive{padding}\n\n"),
        };
        let chunk = line.repeat(16).into_bytes();
        let mut reader = AnswerReader::new(dialect, AnswerLimits::default());
        let pushes = (1_usize << 30) / chunk.len();
        let trouble = (0..pushes).find_map(|_| reader.push(&chunk, &mut Vec::new()).err());
        let expected = Trouble::TooMuch { what: "bytes in one answer", limit: 64 << 20 };
        assert_eq!(trouble, Some(expected), "{dialect:?}");
    }
}

#[test]
fn ten_thousand_deltas_are_one_part() {
    for dialect in [Dialect::Responses, Dialect::Chat, Dialect::Gemini, Dialect::Ollama] {
        let mut steps = vec![text("ab"); 10_000];
        steps.push(Step::End(Stop));
        let body = render(dialect, &steps);
        let result = read_chunks(dialect, &AnswerLimits::default(), body.as_bytes(), &[100]);
        let answer = result.answer.expect("an answer");
        assert_eq!((answer.parts.len(), answer.text().len()), (1, 20_000), "{dialect:?}");
    }
}

/// A block of Anthropic has many deltas; the other dialects have no blocks.
#[test]
fn ten_thousand_deltas_of_one_block_are_one_part() {
    let start =
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
    let delta =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "ab" } });
    let rest = render(Dialect::Anthropic, &[Step::End(Stop)]);
    let body = sse(start) + &sse(delta).repeat(10_000) + &rest;
    let result = read_chunks(Dialect::Anthropic, &AnswerLimits::default(), body.as_bytes(), &[100]);
    let answer = result.answer.expect("an answer");
    assert_eq!((answer.parts.len(), answer.text().len()), (1, 20_000));
}

#[test]
fn too_many_parts_fail() {
    let mut steps = vec![Step::Think("a".into()); 5000];
    steps.push(Step::End(Stop));
    for dialect in [Dialect::Responses, Dialect::Anthropic, Dialect::Gemini] {
        let body = render(dialect, &steps);
        let result = read_chunks(dialect, &AnswerLimits::default(), body.as_bytes(), &[body.len()]);
        assert_eq!(summary(&result), r#"TooMuch { what: "parts", limit: 4096 }"#, "{dialect:?}");
    }
}

#[test]
fn invalid_utf_8_and_invalid_json_are_garbled() {
    for dialect in Dialect::ALL {
        let begin = render(dialect, &[text("a")]);
        let prefix = if dialect == Dialect::Ollama { "" } else { "data: " };
        let mut bytes = begin.clone().into_bytes();
        bytes.extend_from_slice(prefix.as_bytes());
        bytes.extend_from_slice(b"{\"a\":\"\xff\"}\n\n");
        check(dialect, "bad UTF-8", bytes, "Garbled");
        check(dialect, "bad JSON", format!("{begin}{prefix}{{]}}\n\n"), "Garbled");
        check(dialect, "a number", format!("{begin}{prefix}{{\"error\":}}\n\n"), "Garbled");
    }
}

#[test]
fn empty_events_are_ignored() {
    for dialect in Dialect::ALL.into_iter().filter(|it| *it != Dialect::Ollama) {
        let body =
            "data:\n\ndata\n\nevent: ping\n\n".to_owned() + &render(dialect, &[text("a"), Step::End(Stop)]);
        check(dialect, "empty data", body, r#""a" Stop"#);
    }
}
