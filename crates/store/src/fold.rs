//! What a search compares: text without its letter case, the same on both engines.
//!
//! The engines disagree about case beyond ASCII, and one of them about what a letter is. So the text is folded here,
//! once when it is written and once when it is searched for, and an engine only looks for one string in another.

use unicode_normalization::UnicodeNormalization;

/// Stands around each tag, and in none: tags have no control characters.
const FENCE: char = '\u{1f}';

/// The text, composed, and without its case. Upwards first and then down: `ß` meets `SS`, and a final sigma the other.
pub(crate) fn key(text: &str) -> String {
    let upper = text.nfc().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).nfc().collect()
}

/// All tags in one string, each between fences.
pub(crate) fn tags_key(tags: &[String]) -> String {
    tags.iter().map(|tag| tag_key(tag)).collect()
}

/// One tag as it is found in [`tags_key`].
pub(crate) fn tag_key(tag: &str) -> String {
    format!("{FENCE}{}{FENCE}", key(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_forgotten_in_every_script() {
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
    fn a_tag_is_found_whole() {
        let tags = tags_key(&["Home".into(), "to do".into()]);
        assert!(tags.contains(&tag_key("hOME")) && tags.contains(&tag_key("TO DO")));
        assert!(!tags.contains(&tag_key("hom")) && !tags.contains(&tag_key("do")));
    }
}
