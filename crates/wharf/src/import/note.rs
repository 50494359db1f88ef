//! Notes for the user about the result of an import.

use std::fmt;

/// A sentence about one server or about the file. It may name keys and variables, but never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) server: Option<String>,
    pub(crate) text: String,
}

impl Note {
    pub(super) fn about(server: &str, text: impl Into<String>) -> Note {
        Note { server: Some(server.to_owned()), text: text.into() }
    }

    pub(super) fn general(text: impl Into<String>) -> Note {
        Note { server: None, text: text.into() }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.server {
            write!(f, "`{}`: ", printable(server))?;
        }
        f.write_str(&printable(&self.text))
    }
}

/// Escapes characters that would move the cursor, break the line or change the text direction.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Checks for invisible characters that are not control characters.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Formats names in backticks, separated by commas.
pub(super) fn list_names<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|it| format!("`{}`", it.as_ref())).collect();
    names.join(", ")
}
