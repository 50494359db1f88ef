//! Matches names against patterns in which `*` matches any run of characters and `?` matches one.

use crate::{file_position::FilePosition, masked_string::MaskedString};
use std::{str::Chars, sync::Arc};

/// A pattern over names, for example of tools or environment variables.
///
/// Two globs with the same pattern are equal, wherever they are written.
#[derive(Clone, Debug)]
pub struct Glob {
    pattern: MaskedString,
    /// Line of a configuration file, if known.
    at: Option<Arc<FilePosition>>,
}

impl PartialEq for Glob {
    fn eq(&self, other: &Glob) -> bool {
        self.pattern == other.pattern
    }
}

impl Eq for Glob {}

impl Glob {
    /// Creates a glob. Every string is valid.
    pub fn new(pattern: impl Into<String>) -> Glob {
        Glob::of(MaskedString::plain(pattern))
    }

    /// Creates a glob that may contain a secret from a variable. Only its shown form is printed.
    pub(crate) fn of(pattern: MaskedString) -> Glob {
        Glob { pattern, at: None }
    }

    /// Adds the line of the configuration file that has the pattern.
    pub(crate) fn written_at(self, at: FilePosition) -> Glob {
        Glob { at: Some(Arc::new(at)), ..self }
    }

    /// Returns the pattern.
    pub fn as_str(&self) -> &str {
        self.pattern.expose()
    }

    /// Returns the line of the configuration file that has the pattern, if known.
    pub fn at(&self) -> Option<&FilePosition> {
        self.at.as_deref()
    }

    /// Returns whether the pattern matches all of `name`.
    pub fn matches(&self, name: &str) -> bool {
        matches(self.pattern.expose(), name)
    }
}

/// Returns whether `pattern` matches all of `name`. The time is at most the product of their lengths for any pattern.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Backtracking point: the pattern after the last `*`, and the rest of the name to match it against.
    let mut star: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let (before, wanted) = (name.clone(), pattern.next());
        match (wanted, name.next()) {
            (Some('*'), _) => {
                star = Some((pattern.clone(), before.clone()));
                name = before;
            }
            (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {}
            _ => {
                let Some((after, rest)) = &mut star else { return false };
                if rest.next().is_none() {
                    return false;
                }
                (pattern, name) = (after.clone(), rest.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_matches_the_whole_name() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("*", "anything", true),
            ("read_*", "read_file", true),
            ("read_*", "write_file", false),
            ("*_file", "read_text_file", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "é", true),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), fits, "{pattern} against {name}");
        }
    }
}
