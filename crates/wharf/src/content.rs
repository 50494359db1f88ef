//! Formats the content of results as text. Saves or summarises images and audio, and never prints their data.

use crate::pretty_json;
use base64::{Engine, prelude::BASE64_STANDARD};
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};
use wharf_mcp::model::{Block, Blocks, Contents, Item};

/// Formats content as text. Writes binary content to the folder `save`, if given; `pretty` formats JSON over several
/// lines.
pub(crate) fn to_text(blocks: &Blocks, save: Option<&Path>, pretty: bool) -> String {
    let shown = blocks.iter().enumerate().map(|(number, block)| match block {
        Item::Valid(Block::Text(text)) => format_text(text, pretty),
        Item::Valid(Block::Image { data, mime_type }) => binary("image", data, mime_type, number, save),
        Item::Valid(Block::Audio { data, mime_type }) => binary("audio", data, mime_type, number, save),
        Item::Valid(Block::Resource(contents)) => contents_text(contents, number, save),
        Item::Valid(Block::Link { uri, name, .. }) => {
            format!(
                "[link {}{}]",
                printable(uri),
                name.as_ref().map_or_else(String::new, |it| format!(", {}", printable(it)))
            )
        }
        Item::Invalid(raw, why) => format!("[{why}] {}", printable(raw.as_str())),
    });
    shown.map(|it| if it.ends_with('\n') { it } else { it + "\n" }).collect()
}

/// Formats the contents of a resource as text.
pub(crate) fn contents_text(contents: &Contents, number: usize, save: Option<&Path>) -> String {
    let mime_type = contents.mime_type.as_deref().unwrap_or("application/octet-stream");
    match (&contents.text, &contents.blob) {
        (Some(text), _) => printable(text),
        (None, Some(blob)) => binary("resource", blob, mime_type, number, save),
        (None, None) => format!("[{} is empty]", printable(&contents.uri)),
    }
}

/// Prepares text for a terminal. With `pretty`, formats JSON over several lines.
pub(crate) fn format_text(text: &str, pretty: bool) -> String {
    let broken = if pretty { pretty_json::pretty(text) } else { None };
    printable(broken.as_deref().unwrap_or(text))
}

/// Removes control characters, which could move the cursor of a terminal or change its colours, and bidirectional
/// ones, which could show text in another order than it has.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| is_printable(*c)).collect()
}

/// Checks that a character is neither a control character, except for newline and tab, nor a bidirectional one.
pub(crate) fn is_printable(c: char) -> bool {
    let is_bidirectional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !is_bidirectional && (!c.is_control() || matches!(c, '\n' | '\t'))
}

fn binary(what: &str, data: &str, mime_type: &str, number: usize, save: Option<&Path>) -> String {
    let size = data.trim_end_matches('=').len() * 3 / 4;
    let mime_type = printable(mime_type);
    let summary = format!("{what} {mime_type}, {size} bytes");
    match save.map(|folder| write(data, &mime_type, number, folder)) {
        None => format!("[{summary}; `--save FOLDER` writes it]"),
        Some(Ok(path)) => format!("[{summary}, written to {}]", path.display()),
        Some(Err(why)) => format!("[{summary}, not written: {why}]"),
    }
}

fn write(data: &str, mime_type: &str, number: usize, folder: &Path) -> Result<PathBuf, String> {
    let bytes = BASE64_STANDARD.decode(data).map_err(|_| "it is not base64".to_owned())?;
    // Only letters and digits from the server may become part of the file name.
    let kind = mime_type.rsplit('/').next().unwrap_or_default();
    let extension: String = kind.chars().take_while(char::is_ascii_alphanumeric).take(8).collect();
    let extension = if extension.is_empty() { "bin".to_owned() } else { extension };
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    // Never overwrite a file from an earlier call.
    for number in number + 1.. {
        let path = folder.join(format!("content-{number}.{extension}"));
        match fs::File::create_new(&path).and_then(|mut file| file.write_all(&bytes)) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("every name is taken".to_owned())
}
