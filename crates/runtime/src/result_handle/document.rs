//! The document of a result: the one value in it that a reader wants.

use crate::Redactor;
use serde_json::value::RawValue;
use std::sync::Arc;
use wharf_mcp::{Members, Raw};

/// Document of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its kind.
    pub kind: DocumentKind,
    /// Its text: JSON, or plain text.
    pub text: Arc<str>,
}

/// Kinds of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// Structured content, or a text that is JSON.
    Json,
    /// A text.
    Text,
    /// Several content blocks, or one that is not text, as JSON.
    Blocks,
}

/// Part of a document.
pub(super) enum Part<'a> {
    /// Plain text.
    Text(&'a str),
    /// A JSON value as it is in the document.
    Json(&'a RawValue),
}

impl Document {
    /// Takes the document out of a result: its structured content, else its only text, else all its blocks.
    pub fn of(result: &Raw) -> Document {
        let [structured, content] = result.pick(["structuredContent", "content"]);
        if let Some(structured) = structured {
            return Document { kind: DocumentKind::Json, text: structured.as_str().into() };
        }
        let content = content.unwrap_or_else(|| Raw::list([]));
        let blocks: Vec<&RawValue> = content.decode().unwrap_or_default();
        let only = if let [block] = blocks[..] { text_of_block(block) } else { None };
        match only {
            Some(text) => Document::of_text(&text),
            None => Document { kind: DocumentKind::Blocks, text: content.as_str().into() },
        }
    }

    /// Takes the document out of a result, without secrets. A text inside JSON is one level less encoded than the result,
    /// so it is redacted again.
    pub fn redacted(result: &Raw, redactor: &Redactor) -> Document {
        let redacted = redactor.redact_json(result);
        let document = Document::of(&redacted);
        match redactor.redact_bytes_if_found(document.text.as_bytes()) {
            None => document,
            Some(text) if document.kind == DocumentKind::Text => Document { text: text.into(), ..document },
            Some(text) => Document::of_text(&text),
        }
    }

    /// Takes a text as a document: JSON, if it is an object or an array, else plain text.
    pub(crate) fn of_text(text: &str) -> Document {
        let is_container = text.trim_start().starts_with(['{', '[']);
        let is_json = is_container && serde_json::from_str::<&RawValue>(text).is_ok();
        let kind = if is_json { DocumentKind::Json } else { DocumentKind::Text };
        Document { kind, text: text.into() }
    }

    /// Returns the media type.
    pub fn media_type(&self) -> &'static str {
        self.kind.media_type()
    }

    /// Returns the text of the part at a JSON Pointer. The empty pointer is the whole document.
    pub fn part_text(&self, pointer: &str) -> Option<&str> {
        self.part(pointer).map(|it| match it {
            Part::Text(text) => text,
            Part::Json(value) => value.get(),
        })
    }

    /// Finds the part at a JSON Pointer. The empty pointer is the whole document.
    pub(super) fn part(&self, pointer: &str) -> Option<Part<'_>> {
        if self.kind == DocumentKind::Text {
            return pointer.is_empty().then_some(Part::Text(&self.text));
        }
        let mut value: &RawValue = serde_json::from_str(&self.text).ok()?;
        if pointer.is_empty() {
            return Some(Part::Json(value));
        }
        for token in pointer.strip_prefix('/')?.split('/') {
            value = child(value, &token.replace("~1", "/").replace("~0", "~"))?;
        }
        Some(Part::Json(value))
    }
}

impl DocumentKind {
    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            DocumentKind::Json => "json",
            DocumentKind::Text => "text",
            DocumentKind::Blocks => "blocks",
        }
    }

    /// Parses the name of a kind.
    pub fn parse(name: &str) -> Option<DocumentKind> {
        [DocumentKind::Json, DocumentKind::Text, DocumentKind::Blocks]
            .into_iter()
            .find(|it| it.as_str() == name)
    }

    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            DocumentKind::Json | DocumentKind::Blocks => "application/json",
            DocumentKind::Text => "text/plain",
        }
    }
}

fn text_of_block(block: &RawValue) -> Option<String> {
    let members: Members<'_> = serde_json::from_str(block.get()).ok()?;
    let text = |name| serde_json::from_str::<String>(members.get(name)?.get()).ok();
    text("type").filter(|it| it == "text")?;
    text("text")
}

fn child<'a>(value: &'a RawValue, token: &str) -> Option<&'a RawValue> {
    if value.get().starts_with('{') {
        return serde_json::from_str::<Members<'a>>(value.get()).ok()?.get(token);
    }
    let is_index = token == "0" || !token.starts_with('0') && token.bytes().all(|it| it.is_ascii_digit());
    let index: usize = token.parse().ok().filter(|_| is_index)?;
    serde_json::from_str::<Vec<&RawValue>>(value.get()).ok()?.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_is_the_structured_content_or_the_only_text_or_all_blocks() {
        for (result, kind, text) in [
            (
                r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1.0}}"#,
                "json",
                r#"{"a":1.0}"#,
            ),
            (r#"{"content":[{"type":"text","text":"[1, 2]"}]}"#, "json", "[1, 2]"),
            (r#"{"content":[{"type":"text","text":"[1, 2"}]}"#, "text", "[1, 2"),
            (r#"{"content":[{"type":"text","text":"7"}]}"#, "text", "7"),
            (r#"{"content":[{"type":"image","data":""}]}"#, "blocks", r#"[{"type":"image","data":""}]"#),
            ("{}", "blocks", "[]"),
        ] {
            let document = Document::of(&Raw::parse(result).expect("JSON"));
            assert_eq!((document.kind.as_str(), &*document.text), (kind, text), "{result}");
        }
    }

    #[test]
    fn parts_keep_the_bytes_of_the_document() {
        let text = r#"{"a/b": [1.50, {"~": 1e400}], "": null}"#;
        let json = Document { kind: DocumentKind::Json, text: text.into() };
        for (pointer, expected) in [
            ("", Some(text)),
            ("/a~1b/0", Some("1.50")),
            ("/a~1b/1/~0", Some("1e400")),
            ("/", Some("null")),
            ("/a~1b/2", None),
            ("/a~1b/01", None),
            ("a", None),
        ] {
            let found = json.part(pointer).map(|it| match it {
                Part::Text(text) => text,
                Part::Json(value) => value.get(),
            });
            assert_eq!(found, expected, "{pointer}");
        }
    }
}
