//! Tests the truncation of results.

use super::*;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use wharf_mcp::model::CallResult;

/// Every limit from here on is kept.
const MIN_LIMIT_BYTES: usize = 512;

const MARKER_END: &str = "left out; the whole result is in the call record …]";

fn truncated(result: &Value, limit: usize) -> Option<Value> {
    let raw = Raw::from(result.clone());
    let truncated = super::result(&raw, limit)?;
    assert!(
        truncated.as_bytes().len() <= limit,
        "{} over {limit}: {truncated:?}",
        truncated.as_bytes().len()
    );
    Some(truncated.decode().expect("JSON"))
}

fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().expect("content");
    blocks.iter().map(|it| it["text"].as_str().expect("a text")).collect()
}

#[test]
fn result_within_the_limit_is_unchanged() {
    let result = json!({"content": [{"type": "text", "text": "short"}], "isError": true});
    assert_eq!(truncated(&result, 10_000), None);
    let length = Raw::from(result.clone()).as_bytes().len();
    assert_eq!(truncated(&result, length), None);
}

#[test]
fn long_text_keeps_beginning_and_end() {
    let text = format!("begin {} end", "x".repeat(100_000));
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true, "_meta": {"a": 1}});
    let truncated = truncated(&result, 1000).expect("it is too long");
    let [text] = texts(&truncated)[..] else { panic!("one text") };
    assert!(text.starts_with("begin xxx") && text.ends_with("xxx end"), "{text}");
    assert!(text.contains(&format!("bytes {MARKER_END}")), "{text}");
    assert_eq!((&truncated["isError"], &truncated["_meta"]["a"]), (&json!(true), &json!(1)));
}

#[test]
fn binary_data_is_replaced_by_a_marker() {
    for (block, expected) in [
        (
            json!({"type": "image", "data": "A".repeat(9000), "mimeType": "image/png"}),
            "an image of 9049 bytes",
        ),
        (
            json!({"type": "audio", "data": "A".repeat(9000), "mimeType": "audio/wav"}),
            "a sound of 9049 bytes",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "a:b", "mimeType": "x/y", "blob": "A".repeat(9000)}}),
            "a resource of 9071 bytes",
        ),
        (json!({"type": "hologram", "rays": "A".repeat(9000)}), "a block of 9029 bytes"),
        (json!("A".repeat(9000)), "a block of 9002 bytes"),
    ] {
        let small = json!({"type": "text", "text": "small"});
        let truncated = truncated(&json!({"content": [small, block]}), 1000).expect("it is too long");
        assert_eq!(texts(&truncated), ["small", &format!("[… {expected} {MARKER_END}")]);
    }
}

#[test]
fn resource_keeps_its_uri_and_the_ends_of_its_text() {
    let resource = json!({"uri": "file:///notes", "mimeType": "text/plain", "text": "line\n".repeat(5000)});
    let truncated = truncated(&json!({"content": [{"type": "resource", "resource": resource}]}), 1000)
        .expect("it is too long");
    let resource = &truncated["content"][0]["resource"];
    assert_eq!(resource["uri"], "file:///notes");
    let text = resource["text"].as_str().expect("a text");
    assert!(
        text.starts_with("line\nline") && text.ends_with("line\n") && text.contains(MARKER_END),
        "{text}"
    );
}

#[test]
fn structured_content_is_kept_or_dropped_as_a_whole() {
    let small =
        json!({"content": [{"type": "text", "text": "x".repeat(9000)}], "structuredContent": {"a": 1}});
    assert_eq!(truncated(&small, 1000).expect("it is too long")["structuredContent"], json!({"a": 1}));
    let large =
        json!({"content": [{"type": "text", "text": "kept"}], "structuredContent": {"a": "x".repeat(9000)}});
    let truncated = truncated(&large, 1000).expect("it is too long");
    assert_eq!(truncated.get("structuredContent"), None);
    assert_eq!(texts(&truncated), ["kept", &format!("[… 9008 bytes {MARKER_END}")]);
}

#[test]
fn last_of_many_blocks_are_dropped() {
    let blocks: Vec<Value> =
        (0..1000).map(|at| json!({"type": "text", "text": format!("block {at}")})).collect();
    let truncated = truncated(&json!({"content": blocks}), 2000).expect("it is too long");
    let texts = texts(&truncated);
    let (last, first) = texts.split_last().expect("blocks");
    assert_eq!(first[..2], ["block 0", "block 1"]);
    assert!(last.starts_with("[… ") && last.ends_with(MARKER_END), "{last}");
}

#[test]
fn long_text_gets_the_space_that_short_ones_leave() {
    let block = |text: &str| json!({"type": "text", "text": text});
    let blocks = json!([block(&"x".repeat(100_000)), block("short"), block("short")]);
    let truncated = truncated(&json!({"content": blocks}), 10_000).expect("it is too long");
    assert!(texts(&truncated)[0].len() > 9000);
}

#[test]
fn truncated_text_is_cut_between_characters() {
    let text: String = ('a'..='z').cycle().take(1000).collect();
    let expected = format!(
        "abcdefghijklmnopqrst\n[… 970 bytes left out; the whole result is in the call record …]\n{}",
        &text[990..]
    );
    assert_eq!(keep_ends(&text, MAX_MARKER_BYTES + 30), expected);
    let truncated = keep_ends(&"€\n\u{1}".repeat(500), MAX_MARKER_BYTES + 100);
    let length = Value::from(truncated.as_str()).to_string().len();
    assert!(length <= MAX_MARKER_BYTES + 100 + 2, "{truncated}");
    let longest = Value::from(format!("\n{}\n", marker(&format!("{} bytes", usize::MAX)))).to_string();
    assert!(longest.len() <= MAX_MARKER_BYTES + 2 && longest.len() < MIN_BLOCK_BYTES - 30, "{longest}");
}

#[test]
fn limit_below_the_minimum_leaves_only_a_marker() {
    let result = json!({"content": [{"type": "text", "text": "x".repeat(9000)}], "isError": true});
    let truncated = super::result(&Raw::from(result), 100).expect("it is too long");
    let expected =
        format!(r#"{{"content":[{{"type":"text","text":"[… 9025 bytes {MARKER_END}"}}],"isError":true}}"#);
    assert_eq!(truncated.as_str(), expected);
    let odd = super::result(&Raw::from(json!("x".repeat(9000))), 1000).expect("it is too long");
    assert_eq!(odd.member("content").map(|it| it.as_str().contains("9002 bytes")), Some(true));
}

fn text() -> impl Strategy<Value = String> {
    let piece =
        select(vec!["", "a", "word ", "\"", "\\", "\n", "\u{1}", "é", "€uro ", "💣", "a\"b\\c\u{1f}€"]);
    (piece, 1usize..800).prop_map(|(piece, times)| piece.repeat(times))
}

fn block() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(|it| json!({"type": "text", "text": it})),
        1 => (text(), text()).prop_map(|(a, b)| json!({"type": "text", "text": a, "annotations": {"x": b}})),
        1 => (text(), text()).prop_map(|(a, b)| json!({"type": "image", "data": a, "mimeType": b})),
        1 => (text(), text()).prop_map(|(a, b)| json!({"type": "resource", "resource": {"uri": a, "text": b}})),
        1 => text().prop_map(Value::from),
        1 => (text(), text()).prop_map(|(a, b)| json!({"type": a, "other": b})),
    ]
}

fn any_result() -> impl Strategy<Value = Value> {
    let member =
        (prop_oneof![Just("_meta".to_owned()), Just("structuredContent".to_owned()), text()], text());
    (vec(block(), 0..20), vec(member, 0..4), any::<Option<bool>>()).prop_map(|(blocks, members, is_error)| {
        let mut result = json!({"content": blocks});
        for (name, value) in members.into_iter().filter(|(name, _)| name != CONTENT) {
            result[name] = json!({"v": value});
        }
        if let Some(is_error) = is_error {
            result["isError"] = is_error.into();
        }
        result
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn truncated_result_is_valid_and_within_the_limit(result in any_result(), limit in MIN_LIMIT_BYTES..6000) {
        let raw = Raw::from(result);
        let Some(truncated) = super::result(&raw, limit) else {
            prop_assert!(raw.as_bytes().len() <= limit);
            return Ok(());
        };
        prop_assert!(truncated.as_bytes().len() <= limit, "{} over {limit}", truncated.as_bytes().len());
        prop_assert!(truncated.as_str().contains(MARKER_END), "it does not say that something is missing");
        let (before, after) = (CallResult::read(&raw), CallResult::read(&truncated));
        prop_assert_eq!(before.is_error, after.is_error);
        prop_assert!(after.content.iter().any(|it| matches!(it, wharf_mcp::model::Item::Valid(_))));
        prop_assert_eq!(super::result(&truncated, limit), None, "what is cut fits");
    }
}
