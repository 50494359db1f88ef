//! A pattern in which `*` stands for any run of characters and `?` for one.

use crate::text::Text;
use std::str::Chars;

/// A glob over names: of tools that a model is offered, of environment variables that an operator grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(Text);

impl Glob {
    /// Every string is a glob.
    pub fn new(pattern: impl Into<String>) -> Glob {
        Glob(Text::plain(pattern))
    }

    /// A glob that may have come from a variable, and then is not shown.
    pub(crate) fn of(pattern: Text) -> Glob {
        Glob(pattern)
    }

    /// The pattern.
    pub fn as_str(&self) -> &str {
        self.0.expose()
    }

    /// Whether the whole of `name` fits the pattern.
    pub fn matches(&self, name: &str) -> bool {
        matches(self.0.expose(), name)
    }
}

/// Whether the whole of `name` fits `pattern`: at most the product of their lengths, whatever the pattern.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // What followed the last `*`, and what is left of the name if it swallows one character more.
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
    fn globs() {
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
