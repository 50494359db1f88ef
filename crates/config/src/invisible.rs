//! Recognises characters that people do not see in a text, but models read.

/// Returns whether a character is invisible, or a space that looks like another one: controls, format characters, private
/// use, line and paragraph separators, spaces other than U+0020, tags, variation selectors and fillers.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || c != ' ' && c.is_whitespace()
        || matches!(u32::from(c),
            // Format characters (Cf), which include tags, joiners, bidirectional marks and the byte order mark.
            0xAD | 0x600..=0x605 | 0x61C | 0x6DD | 0x70F | 0x890..=0x891 | 0x8E2 | 0x180E
            | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0xFEFF | 0xFFF9..=0xFFFB
            | 0x110BD | 0x110CD | 0x13430..=0x1343F | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A
            | 0xE0000..=0xE0FFF
            // Variation selectors, the combining grapheme joiner and fillers.
            | 0xFE00..=0xFE0F | 0x34F | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x3164 | 0xFFA0
            | 0x2800
            // Private use (Co).
            | 0xE000..=0xF8FF | 0xF0000..=0x10_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_recognised() {
        for c in [
            '\u{200b}',
            '\u{202e}',
            '\u{e0041}',
            '\u{a0}',
            '\u{3164}',
            '\u{feff}',
            '\u{7}',
            '\u{2028}',
            '\u{e000}',
        ] {
            assert!(is_invisible(c), "{:?}", c.escape_unicode());
        }
        for c in ['a', ' ', 'ß', '日', '🦀', '–', '\u{301}'] {
            assert!(!is_invisible(c), "{c}");
        }
    }
}
