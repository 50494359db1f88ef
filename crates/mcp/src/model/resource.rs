//! Resources, resource templates and their contents.

use super::{Item, Read, content::check_base64, elements, lenient, required};
use crate::Raw;

/// Resource as listed by `resources/list`.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// URI of the resource.
    pub uri: String,
    /// Resource name; the URI if none is given.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// MIME type.
    pub mime_type: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Whole resource, as the server sent it.
    pub raw: Raw,
}

/// Resource template as listed by `resources/templates/list`.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// RFC 6570 URI template.
    pub uri_template: String,
    /// Template name; the URI template if none is given.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// MIME type.
    pub mime_type: Option<String>,
    /// Whole template, as the server sent it.
    pub raw: Raw,
}

/// Contents of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// URI of the resource.
    pub uri: String,
    /// MIME type.
    pub mime_type: Option<String>,
    /// Text contents, if any.
    pub text: Option<String>,
    /// Binary contents in base64, if any.
    pub blob: Option<String>,
    /// Whole contents, as the server sent them.
    pub raw: Raw,
}

/// Result of `resources/read`; it may hold several contents, for example for a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadResult {
    /// Contents, each read separately.
    pub contents: Vec<Item<Contents>>,
    /// Whole result, as the server sent it.
    pub raw: Raw,
}

impl Read for Resource {
    fn read(raw: &Raw) -> Result<Resource, String> {
        let uri: String = required(raw, "uri")?;
        Ok(Resource {
            name: lenient(raw, "name").unwrap_or_else(|| uri.clone()),
            uri,
            title: lenient(raw, "title"),
            description: lenient(raw, "description"),
            mime_type: lenient(raw, "mimeType"),
            size: lenient(raw, "size"),
            raw: raw.clone(),
        })
    }
}

impl Read for Template {
    fn read(raw: &Raw) -> Result<Template, String> {
        let uri_template: String = required(raw, "uriTemplate")?;
        Ok(Template {
            name: lenient(raw, "name").unwrap_or_else(|| uri_template.clone()),
            uri_template,
            description: lenient(raw, "description"),
            mime_type: lenient(raw, "mimeType"),
            raw: raw.clone(),
        })
    }
}

impl Read for Contents {
    fn read(raw: &Raw) -> Result<Contents, String> {
        let uri = required(raw, "uri")?;
        let (text, blob) = (super::optional(raw, "text")?, super::optional::<String>(raw, "blob")?);
        blob.as_deref().map_or(Ok(()), check_base64)?;
        Ok(Contents { uri, mime_type: lenient(raw, "mimeType"), text, blob, raw: raw.clone() })
    }
}

impl ReadResult {
    /// Reads a result. It never fails, whatever the result contains.
    pub fn read(raw: &Raw) -> ReadResult {
        let contents = elements(raw, "contents").unwrap_or_default();
        ReadResult { contents: contents.iter().map(Item::read).collect(), raw: raw.clone() }
    }
}
