//! Resources, and what is in them.

use super::{Item, Read, content::base64, elements, lenient, required};
use crate::Raw;

/// A resource, as `resources/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// Its name; the URI where none is given.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its type.
    pub mime_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Everything, as the server sent it.
    pub raw: Raw,
}

/// A family of resources, as `resources/templates/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Where they are: an RFC 6570 template.
    pub uri_template: String,
    /// Its name; the template where none is given.
    pub name: String,
    /// What they are.
    pub description: Option<String>,
    /// Their type.
    pub mime_type: Option<String>,
    /// Everything, as the server sent it.
    pub raw: Raw,
}

/// The contents of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// Where it is.
    pub uri: String,
    /// Its type.
    pub mime_type: Option<String>,
    /// Its text, if it is text.
    pub text: Option<String>,
    /// Its bytes in base64, if it is not.
    pub blob: Option<String>,
    /// Everything, as the server sent it.
    pub raw: Raw,
}

/// The result of reading a resource: possibly several, if it is a folder.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadResult {
    /// The contents, each read on its own.
    pub contents: Vec<Item<Contents>>,
    /// Everything, as the server sent it.
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
        blob.as_deref().map_or(Ok(()), base64)?;
        Ok(Contents { uri, mime_type: lenient(raw, "mimeType"), text, blob, raw: raw.clone() })
    }
}

impl ReadResult {
    /// Reads a result. Whatever it holds, this cannot fail.
    pub fn read(raw: &Raw) -> ReadResult {
        let contents = elements(raw, "contents").unwrap_or_default();
        ReadResult { contents: contents.iter().map(Item::read).collect(), raw: raw.clone() }
    }
}
