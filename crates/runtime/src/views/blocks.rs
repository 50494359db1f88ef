//! Converts content blocks into their public JSON shapes.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use wharf_mcp::{
    Raw,
    model::{Block, Contents, Item},
};

/// Converts content blocks to JSON of type text, image, audio or binary. A block that cannot be parsed becomes
/// `unknown`.
pub fn content_blocks(blocks: &[Item<Block>]) -> Raw {
    Raw::list(blocks.iter().map(|block| match block {
        Item::Valid(Block::Text(text)) => json!({ "type": "text", "text": text }).into(),
        Item::Valid(Block::Image { data, mime_type }) => {
            json!({ "type": "image", "data": data, "mime_type": mime_type }).into()
        }
        Item::Valid(Block::Audio { data, mime_type }) => {
            json!({ "type": "audio", "data": data, "mime_type": mime_type }).into()
        }
        Item::Valid(Block::Resource(contents)) => contents_block(contents).into(),
        Item::Valid(Block::Link { uri, mime_type, .. }) => {
            json!({ "type": "binary", "data": "", "mime_type": mime_type, "uri": uri }).into()
        }
        Item::Invalid(raw, why) => unknown_block(raw, why),
    }))
}

/// Wraps a block that cannot be parsed, unchanged, with the reason.
pub fn unknown_block(raw: &Raw, why: &str) -> Raw {
    Raw::object([("type", json!("unknown").into()), ("reason", json!(why).into()), ("raw", raw.clone())])
}

/// Converts the contents of a resource to JSON: base64 data, and also the text if it has one.
pub fn contents_block(contents: &Contents) -> Value {
    let Contents { uri, mime_type, text, blob, .. } = contents;
    let data =
        blob.clone().or_else(|| text.as_ref().map(|it| BASE64_STANDARD.encode(it))).unwrap_or_default();
    let mut block = json!({ "type": "binary", "data": data, "mime_type": mime_type, "uri": uri });
    if let Some(text) = text {
        block["text"] = json!(text);
    }
    block
}
