//! The content of results: text, pictures, sound, resources.

use super::{Contents, Item, Read, elements, lenient, required};
use crate::Raw;

/// One block of content.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text(String),
    /// A picture, in base64.
    Image {
        /// The data.
        data: String,
        /// Its type.
        mime_type: String,
    },
    /// Sound, in base64.
    Audio {
        /// The data.
        data: String,
        /// Its type.
        mime_type: String,
    },
    /// A resource, with its contents.
    Resource(Contents),
    /// A resource that can be read; never followed by this crate.
    Link {
        /// Where it is.
        uri: String,
        /// Its name.
        name: Option<String>,
        /// Its type.
        mime_type: Option<String>,
    },
}

/// Blocks, each read on its own.
pub type Blocks = Vec<Item<Block>>;

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// What the tool says.
    pub content: Blocks,
    /// What it says to programs.
    pub structured: Option<Raw>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Everything, as the server sent it.
    pub raw: Raw,
}

impl CallResult {
    /// Reads a result. Whatever it holds, this cannot fail.
    pub fn read(raw: &Raw) -> CallResult {
        let blocks = elements(raw, "content").map(|blocks| blocks.iter().map(Item::read).collect());
        let content = blocks.unwrap_or_else(|| match raw.member("content") {
            None => Vec::new(),
            Some(odd) => vec![Item::Odd(odd, "`content` is no array".into())],
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
            unknown => Err(format!("`{unknown}` is no known type of content")),
        }
    }
}

fn media(raw: &Raw) -> Result<(String, String), String> {
    let data: String = required(raw, "data")?;
    base64(&data)?;
    Ok((data, required(raw, "mimeType")?))
}

/// Checks the alphabet and the length, without decoding what may be megabytes.
pub(super) fn base64(data: &str) -> Result<(), String> {
    let body = data.trim_end_matches('=');
    let plain =
        body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_'));
    let whole = body.len() % 4 != 1 && data.len() - body.len() <= 2;
    if plain && whole { Ok(()) } else { Err("the data is not base64".into()) }
}
