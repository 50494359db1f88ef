//! One sentence to the user about what an import did.

use std::fmt;

/// A sentence, about one server or about the file. It names keys and variables and never the value of a secret.
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

/// A text on one line, with everything escaped that would move a cursor, break the line or turn its direction.
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

/// Characters that are not control characters and are still not seen.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Names in backticks, with commas between.
pub(super) fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|it| format!("`{}`", it.as_ref())).collect();
    names.join(", ")
}
