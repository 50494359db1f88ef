//! Well-formed answers.

use super::{
    check, read,
    script::{Step, call, render, text},
    summary,
};
use crate::{
    dialect::{Dialect, FinishReason::*, Usage},
    message::AnswerPart,
};

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
