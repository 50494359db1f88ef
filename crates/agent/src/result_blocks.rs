//! The blocks of a result as content for a model: texts, images, and a line for each block that a model is not shown.

use crate::{
    image::check_image,
    message::{Content, describe_bytes},
};
use wharf_runtime::{
    CallRecord, Outcome, Raw,
    content::{Block, CallResult, Contents, Item},
    result_handle::DocumentKind,
};

/// Maximum size of an image that a model is shown, in bytes.
const MAX_IMAGE_BYTES: usize = 5 << 20;
/// Maximum number of images of one result that a model is shown.
const MAX_IMAGES: usize = 8;
/// Maximum size of the texts beside the images of a stored result that are shown whole, in bytes.
const MAX_TEXT_BESIDE_IMAGES: usize = 4 << 10;

/// Returns the content of a result that was answered. `handle` names the whole result, if it is stored.
pub(crate) fn result_content(record: &CallRecord, handle: Option<&str>) -> Vec<Content> {
    let Some(shown) = record.result() else { return Vec::new() };
    let stored = record.handle.as_ref().and_then(|it| it.stored.as_ref());
    let whole = match (&record.outcome, stored) {
        (Outcome::Answered(whole), Some(stored)) => Some((whole, stored.kind)),
        _ => None,
    };
    let Some((whole, kind)) = whole else { return describe_result(&shown, handle) };
    let blocks = describe_result(whole, handle);
    let is_image = |it: &Content| matches!(it, Content::Image { .. });
    if !blocks.iter().any(is_image) {
        return describe_result(&shown, None);
    }
    let text: usize = blocks.iter().map(Content::text_bytes).sum();
    if kind == DocumentKind::Blocks && text <= MAX_TEXT_BESIDE_IMAGES {
        return blocks;
    }
    describe_result(&shown, None).into_iter().chain(blocks.into_iter().filter(is_image)).collect()
}

/// Returns whether a result has blocks that the model is not shown, so that it needs a handle for them.
pub(crate) fn has_hidden_blocks(result: &Raw, accepts_images: bool) -> bool {
    let mut images = 0;
    CallResult::read(result).content.into_iter().any(|block| match block {
        Item::Valid(Block::Audio { .. }) => true,
        Item::Valid(Block::Image { .. } | Block::Resource(Contents { text: None, .. })) => {
            let shown = describe_block(block, None, &mut images);
            !accepts_images || !matches!(shown, Content::Image { .. })
        }
        _ => false,
    })
}

/// Describes a result: its blocks, or its structured content if there is no text.
fn describe_result(result: &Raw, handle: Option<&str>) -> Vec<Content> {
    let result = CallResult::read(result);
    let mut images = 0;
    let blocks = result.content.into_iter().map(|it| describe_block(it, handle, &mut images));
    let mut content: Vec<Content> = blocks.collect();
    let has_text = content.iter().any(|it| matches!(it, Content::Text(text) if !text.is_empty()));
    if let Some(structured) = result.structured.filter(|_| !has_text) {
        content.push(Content::Text(structured.as_str().to_owned()));
    }
    if content.is_empty() {
        content.push(Content::Text("(the result is empty)".to_owned()));
    }
    content
}

fn describe_block(block: Item<Block>, handle: Option<&str>, images: &mut usize) -> Content {
    let line = |what: &str, base64: &str| Content::Text(describe_bytes(what, base64, handle));
    let mut image = |media_type: String, base64: String| {
        if *images >= MAX_IMAGES || !is_showable(&media_type, &base64) {
            return line(&media_type, &base64);
        }
        *images += 1;
        Content::Image { media_type, base64, handle: handle.map(str::to_owned) }
    };
    match block {
        Item::Valid(Block::Text(text)) => Content::Text(text),
        Item::Valid(Block::Image { data, mime_type }) => image(mime_type, data),
        Item::Valid(Block::Audio { data, mime_type }) => line(&mime_type, &data),
        Item::Valid(Block::Resource(Contents { text: Some(text), .. })) => Content::Text(text),
        Item::Valid(Block::Resource(Contents { uri, blob, mime_type, .. })) => match (blob, mime_type) {
            (Some(blob), Some(media_type)) if media_type.starts_with("image/") => image(media_type, blob),
            (blob, _) => line(&format!("resource: {uri}"), blob.as_deref().unwrap_or_default()),
        },
        Item::Valid(Block::Link { uri, .. }) => Content::Text(format!("[link: {uri}]")),
        Item::Invalid(raw, _) => Content::Text(raw.as_str().to_owned()),
    }
}

/// Returns whether providers accept an image.
fn is_showable(media_type: &str, base64: &str) -> bool {
    base64.len() / 4 * 3 <= MAX_IMAGE_BYTES && check_image(media_type, base64).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn describe(blocks: &serde_json::Value, handle: Option<&str>) -> Vec<String> {
        let result: Raw = json!({ "content": blocks }).into();
        let describe = |it: &Content| match it {
            Content::Text(text) => text.clone(),
            image @ Content::Image { .. } => format!("image {}", image.as_text()),
        };
        describe_result(&result, handle).iter().map(describe).collect()
    }

    #[test]
    fn a_block_that_is_not_shown_is_a_line_with_its_handle() {
        let image =
            |media_type: &str, data: &str| json!({ "type": "image", "mimeType": media_type, "data": data });
        let blob = json!({ "uri": "f://a", "mimeType": "image/gif", "blob": "QUJDRA==" });
        let rows = [
            (image("image/png", "QUJDRA=="), "image [image/png, 1 KB: r-3]", false),
            (json!({ "type": "resource", "resource": blob }), "image [image/gif, 1 KB: r-3]", false),
            (image("image/svg+xml", "QUJDRA=="), "[image/svg+xml, 1 KB: r-3]", true),
            (image("image/png", ""), "[image/png, 0 KB: r-3]", true),
            (image("image/png", "QUJDRA"), "[image/png, 1 KB: r-3]", true),
            (image("image/png", &"QUJD".repeat(MAX_IMAGE_BYTES / 3 + 1)), "[image/png, 5121 KB: r-3]", true),
            (
                json!({ "type": "audio", "mimeType": "audio/wav", "data": "QUJD" }),
                "[audio/wav, 1 KB: r-3]",
                true,
            ),
            (json!({ "type": "text", "text": "a" }), "a", false),
        ];
        for (block, expected, is_hidden) in rows {
            let blocks = json!([block]);
            assert_eq!(describe(&blocks, Some("r-3")), [expected]);
            let result: Raw = json!({ "content": blocks }).into();
            assert_eq!(has_hidden_blocks(&result, true), is_hidden, "{expected}");
            let is_image = expected.contains("image");
            assert_eq!(has_hidden_blocks(&result, false), is_hidden || is_image, "{expected}");
        }
        let many: Vec<_> = (0..=MAX_IMAGES).map(|_| image("image/png", "QUJD")).collect();
        assert_eq!(describe(&json!(many), None).last().map(String::as_str), Some("[image/png, 1 KB]"));
    }
}
