//! Formats user input for messages: on one line, escaped and truncated.

/// Maximum number of characters of user input that a message repeats.
const MAX_ECHO_CHARS: usize = 80;

/// Formats user input for a message: on one line and truncated.
pub(crate) fn echo(text: &str) -> String {
    one_line(text, MAX_ECHO_CHARS)
}

/// Truncates a text to `max_chars` characters, and escapes control characters and characters that change the line or
/// text direction.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        match c {
            _ if count == max_chars => {
                out.push('…');
                break;
            }
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.extend(c.escape_unicode()),
            c if c.is_control() => out.extend(c.escape_debug()),
            c => out.push(c),
        }
    }
    out
}
