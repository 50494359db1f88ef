//! Builds what a reader gets instead of a stored result: a short typed preview, and a link to the whole.

use super::{
    Document, DocumentKind, StoredResult,
    outline::{escape_invisible, first_item, outline},
};
use serde_json::{Value, json, value::RawValue};
use wharf_mcp::{Raw, time_format::rfc3339};

/// Maximum size of the part of a preview that shows content, in bytes.
const MAX_BODY_BYTES: usize = 1500;
/// Maximum size of a line in a preview, in bytes.
const MAX_LINE_BYTES: usize = 160;
/// Number of lines shown from the beginning of a text.
const FIRST_LINES: usize = 20;
/// Number of lines shown from the end of a text.
const LAST_LINES: usize = 5;

/// Builds the result for the reader. `name` is the shown name of the tool.
pub(crate) fn handle_result(stored: &StoredResult, document: &Document, name: &str, result: &Raw) -> Raw {
    let id = stored.short_id();
    let text = format!("result {id} of {name}: {}", describe(stored, document));
    let expires_at = stored.expires_at.map(rfc3339);
    let link = json!({ "type": "resource_link", "uri": stored.uri(), "name": stored.tool,
        "mimeType": stored.kind.media_type(), "size": stored.bytes });
    let about = json!({ "id": id, "bytes": stored.bytes, "sha256": stored.sha256, "kind": stored.kind.as_str(),
        "expires_at": expires_at });
    let content = json!([{ "type": "text", "text": text }, link]);
    let result_type = result.member("resultType").map(|it| ("resultType", it));
    let members = [("content", content.into()), ("_meta", json!({ "wharf/result": about }).into())];
    Raw::object(members.into_iter().chain(result_type))
}

/// Describes a stored document: kind and size, its beginning, and how to read the whole.
pub(crate) fn describe(stored: &StoredResult, document: &Document) -> String {
    let kind = match stored.kind {
        DocumentKind::Json => "JSON",
        DocumentKind::Text => "text",
        DocumentKind::Blocks => "content blocks",
    };
    let pointer = if stored.kind == DocumentKind::Text { "" } else { "#/path/to/part" };
    format!(
        "{kind}, {} bytes\n{}\nread it with wharf__read_result, wharf__grep_result, \
         wharf__query_result; pass it on as {}{pointer}",
        grouped(stored.bytes),
        body(document),
        stored.uri(),
    )
}

fn body(document: &Document) -> String {
    let shown = match document.kind {
        DocumentKind::Text => preview_text(&document.text),
        DocumentKind::Json => match serde_json::from_str::<&RawValue>(&document.text) {
            Ok(value) => preview_json(value),
            Err(_) => String::new(),
        },
        DocumentKind::Blocks => preview_blocks(&document.text),
    };
    shorten(&escape_invisible(&shown), MAX_BODY_BYTES)
}

fn preview_json(value: &RawValue) -> String {
    let outline = shorten(&outline(value), MAX_BODY_BYTES * 2 / 3);
    match first_item(value) {
        Some(first) => format!("{outline}\nfirst: {}", shorten(first.get(), MAX_BODY_BYTES / 3)),
        None => outline,
    }
}

fn preview_text(text: &str) -> String {
    let count = text.lines().count();
    let mut lines: Vec<String> = vec![format!("{} lines", grouped(count as u64))];
    lines.extend(text.lines().take(FIRST_LINES).map(|it| shorten(it, MAX_LINE_BYTES)));
    if count > FIRST_LINES {
        let last: Vec<&str> = text.lines().rev().take(LAST_LINES.min(count - FIRST_LINES)).collect();
        let omitted = count - FIRST_LINES - last.len();
        if omitted > 0 {
            lines.push(format!("… {} lines …", grouped(omitted as u64)));
        }
        lines.extend(last.into_iter().rev().map(|it| shorten(it, MAX_LINE_BYTES)));
    }
    lines.join("\n")
}

fn preview_blocks(text: &str) -> String {
    let blocks: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let describe = |block: &Value| {
        let kind = block["type"].as_str().unwrap_or("block");
        let media_type = block["mimeType"].as_str().or(block["resource"]["mimeType"].as_str());
        let media_type = media_type.map_or_else(String::new, |it| format!(" {it}"));
        format!("{kind}{media_type}, {} bytes", grouped(block.to_string().len() as u64))
    };
    blocks.iter().take(FIRST_LINES).map(describe).collect::<Vec<_>>().join("\n")
}

/// Shortens a text to a number of bytes, at the border of a character.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(limit)])
}

/// Formats a number with commas between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn shown(document: &Document) -> String {
        let stored = StoredResult {
            id: "r-x".into(),
            handle: Some("r-3".into()),
            conversation: Some("c".into()),
            source: "github".into(),
            tool: "list_issues".into(),
            kind: document.kind,
            bytes: document.text.len() as u64,
            sha256: "ab".into(),
            created_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
        };
        let result = handle_result(&stored, document, "github__list_issues", &Raw::empty_object());
        let result: Value = result.decode_or_default();
        assert_eq!(result["content"][1]["uri"], "wharf://results/r-3");
        assert_eq!(result["_meta"]["wharf/result"]["id"], "r-3");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    #[test]
    fn json_preview_has_an_outline_and_the_first_item() {
        let json = Document { kind: DocumentKind::Json, text: r#"{"items":[{"id":1},{"id":2}]}"#.into() };
        assert_eq!(
            shown(&json),
            "result r-3 of github__list_issues: JSON, 29 bytes\n{items: [2 × {id: int}]}\nfirst: {\"id\":1}\n\
             read it with wharf__read_result, wharf__grep_result, wharf__query_result; \
             pass it on as wharf://results/r-3#/path/to/part"
        );
    }

    #[test]
    fn text_preview_has_the_first_and_the_last_lines() {
        let lines: Vec<String> = (1..=1000).map(|it| format!("line {it}")).collect();
        let text = shown(&Document { kind: DocumentKind::Text, text: lines.join("\n").into() });
        assert!(text.contains("1,000 lines\nline 1\n"), "{text}");
        assert!(text.contains("line 20\n… 975 lines …\nline 996\n"), "{text}");
    }

    #[test]
    fn previews_are_small_whatever_the_document() {
        let deep = (0..40)
            .fold("1".to_owned(), |inner, at| format!("{{\"key number {at}\":[{inner},{inner:.40}]}}"));
        let wide = format!("[{}]", vec![r#"{"a":"\u202e"}"#; 5000].join(","));
        for text in [deep, wide, "x".repeat(1 << 20), "\u{200b}".repeat(9000), "é\n".repeat(90_000)] {
            for kind in [DocumentKind::Json, DocumentKind::Text, DocumentKind::Blocks] {
                let shown = shown(&Document { kind, text: text.as_str().into() });
                assert!(shown.len() <= 2048, "{} bytes: {shown:.200}", shown.len());
                assert!(!shown.contains('\u{200b}'), "{shown:.200}");
            }
        }
    }
}
