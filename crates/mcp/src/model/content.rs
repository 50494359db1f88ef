//! Content blocks of results: text, images, audio and resources.

use super::{Contents, Item, Read, elements, lenient, required};
use crate::Raw;

/// One content block.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text(String),
    /// Image, in base64.
    Image {
        /// Base64 data.
        data: String,
        /// MIME type.
        mime_type: String,
    },
    /// Audio, in base64.
    Audio {
        /// Base64 data.
        data: String,
        /// MIME type.
        mime_type: String,
    },
    /// Resource with its contents.
    Resource(Contents),
    /// Link to a resource, which this crate never follows.
    Link {
        /// URI of the resource.
        uri: String,
        /// Resource name.
        name: Option<String>,
        /// MIME type.
        mime_type: Option<String>,
    },
}

/// Content blocks, each read separately.
pub type Blocks = Vec<Item<Block>>;

/// Result of `tools/call`.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// Content blocks.
    pub content: Blocks,
    /// Structured content.
    pub structured: Option<Raw>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Whole result, as the server sent it.
    pub raw: Raw,
}

impl CallResult {
    /// Reads a result. It never fails, whatever the result contains.
    pub fn read(raw: &Raw) -> CallResult {
        let blocks = elements(raw, "content").map(|blocks| blocks.iter().map(Item::read).collect());
        let content = blocks.unwrap_or_else(|| match raw.member("content") {
            None => Vec::new(),
            Some(odd) => vec![Item::Invalid(odd, "`content` is not an array".into())],
        });
        CallResult {
            content,
            structured: raw.member("structuredContent"),
            is_error: lenient(raw, "isError").unwrap_or(false),
            raw: raw.clone(),
        }
    }
}

impl Read for Block {
    fn read(raw: &Raw) -> Result<Block, String> {
        let kind: String = required(raw, "type")?;
        match kind.as_str() {
            "text" => required(raw, "text").map(Block::Text),
            "image" => media(raw).map(|(data, mime_type)| Block::Image { data, mime_type }),
            "audio" => media(raw).map(|(data, mime_type)| Block::Audio { data, mime_type }),
            "resource" => {
                let resource: Raw = required(raw, "resource")?;
                Contents::read(&resource).map(Block::Resource)
            }
            "resource_link" => Ok(Block::Link {
                uri: required(raw, "uri")?,
                name: lenient(raw, "name"),
                mime_type: lenient(raw, "mimeType"),
            }),
            unknown => Err(format!("unknown content type `{unknown}`")),
        }
    }
}

fn media(raw: &Raw) -> Result<(String, String), String> {
    let data: String = required(raw, "data")?;
    check_base64(&data)?;
    Ok((data, required(raw, "mimeType")?))
}

/// Checks alphabet and length without decoding, because the data may be megabytes.
pub(super) fn check_base64(data: &str) -> Result<(), String> {
    let body = data.trim_end_matches('=');
    let plain =
        body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_'));
    let whole = body.len() % 4 != 1 && data.len() - body.len() <= 2;
    if plain && whole { Ok(()) } else { Err("the data is not base64".into()) }
}
