//! Well-formed answers.

use super::{
    check, read,
    script::{Step, call, chat_delta, chat_end, render, sse, text},
    summary,
};
use crate::{
    dialect::{Dialect, Usage},
    message::AnswerPart,
};
use scripted_model::Finish::*;
use serde_json::{Value, json};

#[test]
fn answers_are_read_alike_in_every_dialect() {
    let a = call("c1", "get", r#"{"city": "Köln", "n": 1.50}"#);
    let b = call("c2", "get", r#"{"city":"Bonn"}"#);
    let rows: [(&str, Vec<Step>, &str); 7] = [
        ("text", vec![text("Hel"), text("lo"), Step::End(Stop)], r#""Hello" Stop"#),
        ("split UTF-8", vec![text("grüß "), text("🦀"), Step::End(Stop)], r#""grüß 🦀" Stop"#),
        ("one call", vec![a.clone(), Step::End(Stop)], r#"c1:get({"city": "Köln", "n": 1.50}) Stop"#),
        (
            "two calls",
            vec![a.clone(), b.clone(), Step::End(Stop)],
            r#"c1:get({"city": "Köln", "n": 1.50}) c2:get({"city":"Bonn"}) Stop"#,
        ),
        (
            "text and a call",
            vec![text("Wait."), b.clone(), Step::End(Stop)],
            r#""Wait." c2:get({"city":"Bonn"}) Stop"#,
        ),
        ("length with calls", vec![text("a"), b.clone(), Step::End(Length)], r#""a" Length"#),
        ("length without text", vec![b, Step::End(Length)], "Length"),
    ];
    for dialect in Dialect::ALL {
        for (row, steps, expected) in &rows {
            check(dialect, row, render(dialect, steps), expected);
        }
    }
}

#[test]
fn calls_of_an_answer_that_ended_by_length_are_counted_and_left_out() {
    for dialect in Dialect::ALL {
        let steps = [call("c1", "a", "{}"), call("c2", "b", "{}"), Step::End(Length)];
        let answer = read(dialect, render(dialect, &steps).as_bytes()).answer.expect("an answer");
        assert_eq!((answer.calls().count(), answer.dropped_calls), (0, 2), "{dialect:?}");
    }
}

#[test]
fn sixty_four_calls_are_read_and_sixty_five_are_too_much() {
    for dialect in Dialect::ALL {
        for count in [64, 65] {
            let mut steps: Vec<Step> = (0..count).map(|it| call(&format!("c{it}"), "f", "{}")).collect();
            steps.push(Step::End(ToolCalls));
            let result = read(dialect, render(dialect, &steps).as_bytes());
            match count {
                64 => assert_eq!(result.answer.expect("an answer").calls().count(), 64, "{dialect:?}"),
                _ => assert_eq!(
                    summary(&result),
                    r#"TooMuch { what: "tool calls", limit: 64 }"#,
                    "{dialect:?}"
                ),
            }
        }
    }
}

#[test]
fn reasoning_is_separate_and_keeps_its_native_data() {
    for dialect in Dialect::ALL {
        let steps = [Step::Think("Hm.".into()), text("Yes."), Step::End(Stop)];
        let result = read(dialect, render(dialect, &steps).as_bytes());
        assert_eq!((result.reasoning.as_str(), result.text.as_str()), ("Hm.", "Yes."), "{dialect:?}");
        let answer = result.answer.expect("an answer");
        let [AnswerPart::Reasoning { native, .. }, AnswerPart::Text { .. }] = &answer.parts[..] else {
            panic!("{dialect:?}: {:?}", answer.parts);
        };
        let has_native = matches!(dialect, Dialect::Responses | Dialect::Anthropic | Dialect::Gemini);
        assert_eq!(
            native.as_ref().is_some_and(|it| it.to_string().contains("sig")),
            has_native,
            "{dialect:?}"
        );
    }
}

#[test]
fn usage_is_read_early_late_and_absent() {
    let full = Usage { input: 10, cached_input: 4, output: 5, reasoning: 2 };
    for dialect in Dialect::ALL {
        for steps in [[Step::Usage, text("a"), Step::End(Stop)], [text("a"), Step::End(Stop), Step::Usage]] {
            let answer = read(dialect, render(dialect, &steps).as_bytes()).answer.expect("an answer");
            let expected = if dialect == Dialect::Ollama {
                Usage { cached_input: 0, reasoning: 0, ..full }
            } else {
                full
            };
            assert_eq!(answer.usage, Some(expected), "{dialect:?}");
        }
    }
    for dialect in [Dialect::Chat, Dialect::Gemini] {
        let steps = [text("a"), Step::End(Stop)];
        let answer = read(dialect, render(dialect, &steps).as_bytes()).answer.expect("an answer");
        assert_eq!(answer.usage, None, "{dialect:?}");
    }
}

#[test]
fn line_ends_comments_and_byte_order_marks_do_not_matter() {
    for dialect in Dialect::ALL {
        let plain = render(dialect, &[text("a"), call("c1", "f", "{}"), Step::End(Stop)]);
        let mut rows = vec![plain.replace('\n', "\r\n"), format!("\u{feff}{plain}"), format!("\n\n{plain}")];
        if dialect != Dialect::Ollama {
            rows.push(plain.replace('\n', "\r"));
            rows.push(format!(": PROCESSING\n\n{}", plain.replace("data: ", "data:")));
            rows.push(plain.replace("data: ", "id: 7\nretry: 10\n: ping\ndata: "));
            rows.push(plain.clone() + "data: [DONE]\n\n");
        }
        for bytes in rows {
            check(dialect, "framing", bytes, r#""a" c1:f({}) Stop"#);
        }
    }
}

#[test]
fn chat_reasoning_under_two_names_is_read_once() {
    let delta =
        |delta: Value| chat_delta(delta) + &chat_delta(json!({ "content": "Yes." })) + &chat_end("stop");
    let both = json!({ "reasoning_content": "Hm.", "reasoning": "Hm." });
    for row in [both, json!({ "reasoning": "Hm." }), json!({ "reasoning": "Hm.", "reasoning_content": "" })] {
        check(Dialect::Chat, "reasoning", delta(row), r#"<Hm.> "Yes." Stop"#);
    }
    let blocks = json!({ "content": [{ "type": "text", "text": "Yes." }] });
    check(Dialect::Chat, "typed content", chat_delta(blocks) + &chat_end("stop"), r#""Yes." Stop"#);
}

#[test]
fn signatures_stay_beside_their_part() {
    let part = |part: Value| sse(json!({ "candidates": [{ "content": { "parts": [part] } }] }));
    let body = part(json!({ "text": "a" }))
        + &part(json!({ "text": "b", "thoughtSignature": "s1" }))
        + &part(json!({ "text": "c" }))
        + &part(json!({ "functionCall": { "name": "f", "args": {} }, "thoughtSignature": "s2" }))
        + &part(json!({ "text": "", "thoughtSignature": "s3" }))
        + &render(Dialect::Gemini, &[Step::End(Stop)]);
    let answer = read(Dialect::Gemini, body.as_bytes()).answer.expect("an answer");
    let parts: Vec<(&str, Option<&Value>)> = answer
        .parts
        .iter()
        .map(|part| match part {
            AnswerPart::Text { text, native } | AnswerPart::Reasoning { text, native } => {
                (text.as_str(), native.as_ref())
            }
            AnswerPart::Call(call) => (call.name.as_str(), call.native.as_ref()),
        })
        .collect();
    let (s1, s2, s3) = (json!("s1"), json!("s2"), json!("s3"));
    assert_eq!(parts, [("ab", Some(&s1)), ("c", None), ("f", Some(&s2)), ("", Some(&s3))]);
}

#[test]
fn redacted_thinking_is_kept_as_it_came() {
    let block = json!({ "type": "redacted_thinking", "data": "EmwKAhgB" });
    let start = json!({ "type": "content_block_start", "index": 0, "content_block": block });
    let body = sse(start) + &render(Dialect::Anthropic, &[text("Yes."), Step::End(Stop)]);
    let answer = read(Dialect::Anthropic, body.as_bytes()).answer.expect("an answer");
    assert_eq!(answer.parts[0], AnswerPart::Reasoning { text: String::new(), native: Some(block) });
}
