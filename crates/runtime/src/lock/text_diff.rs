//! Shows how a text changed, word by word: `{+added+}` and `[-removed-]`.

use similar::{ChangeTag, TextDiff};

/// Longest text that is compared by words. Longer ones are compared by lines.
const MAX_WORD_DIFF_BYTES: usize = 64 * 1024;

/// Returns the new text with marks around what was added and removed. Invisible characters are escaped.
pub fn word_diff(before: &str, after: &str) -> String {
    let (before, after) = match before.len().max(after.len()) > MAX_WORD_DIFF_BYTES {
        true => (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect()),
        false => (words(before), words(after)),
    };
    let diff = TextDiff::from_slices(&before, &after);
    let mut out = String::new();
    let mut tag = ChangeTag::Equal;
    for change in diff.iter_all_changes() {
        if change.tag() != tag {
            out.push_str(closing(tag));
            tag = change.tag();
            out.push_str(match tag {
                ChangeTag::Equal => "",
                ChangeTag::Delete => "[-",
                ChangeTag::Insert => "{+",
            });
        }
        out.push_str(&show_invisible(change.value()));
    }
    out + closing(tag)
}

/// Splits a text into words and the single characters between them.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word.max(first.len_utf8()));
        words.push(word);
        rest = after;
    }
    words
}

fn closing(tag: ChangeTag) -> &'static str {
    match tag {
        ChangeTag::Equal => "",
        ChangeTag::Delete => "-]",
        ChangeTag::Insert => "+}",
    }
}

/// Escapes the characters that people do not see.
pub fn show_invisible(text: &str) -> String {
    let shown = |c: char| match wharf_config::is_invisible(c) && c != '\n' {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_words_are_marked() {
        assert_eq!(
            word_diff("Deletes a file.", "Deletes a file, and sends it."),
            "Deletes a file{+, and sends it+}."
        );
        assert_eq!(word_diff("one two", "one"), "one[- two-]");
        assert_eq!(word_diff("a", "a\u{200b}"), "a{+\\u{200b}+}");
    }
}
