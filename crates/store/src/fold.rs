//! Case folding for searches, identical on both engines.
//!
//! The engines differ in how they treat letter case beyond ASCII. This module folds text once when a row is written
//! and once when a search runs, so that the engine only has to look for a substring.

use unicode_normalization::UnicodeNormalization;

/// Delimiter around each tag. Tags contain no control characters, so it cannot be part of one.
const TAG_DELIMITER: char = '\u{1f}';

/// Folds text: NFC, upper case, lower case, NFC. Upper case first makes `ß` match `SS` and both forms of sigma match.
pub(crate) fn key(text: &str) -> String {
    let upper = text.nfc().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).nfc().collect()
}

/// Joins the folded tags into one string, each between delimiters.
pub(crate) fn tags_key(tags: &[String]) -> String {
    tags.iter().map(|tag| tag_key(tag)).collect()
}

/// Folds one tag into the form that [`tags_key`] contains.
pub(crate) fn tag_key(tag: &str) -> String {
    format!("{TAG_DELIMITER}{}{TAG_DELIMITER}", key(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_folds_in_every_script() {
        for (one, other) in [
            ("Milk", "mILK"),
            ("ÄPFEL", "äpfel"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("οδοσ", "ΟΔΟς"),
            ("ПРИВЕТ", "привет"),
            ("cafe\u{301}", "CAFÉ"),
        ] {
            assert_eq!(key(one), key(other));
        }
        for (one, other) in [("e", "é"), ("100%", "1000"), ("a_b", "axb"), ("牛奶", "牛乳")] {
            assert_ne!(key(one), key(other));
        }
    }

    #[test]
    fn only_whole_tags_match() {
        let tags = tags_key(&["Home".into(), "to do".into()]);
        assert!(tags.contains(&tag_key("hOME")) && tags.contains(&tag_key("TO DO")));
        assert!(!tags.contains(&tag_key("hom")) && !tags.contains(&tag_key("do")));
    }
}
