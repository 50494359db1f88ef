//! Every complaint that a configuration can earn: one constructor each, so that the wording has one home.
//!
//! Messages that the contract fixes stand here word for word. The others begin with the class of error they belong to.
//! None quotes a header's value or a value that came from a variable: texts are named by their shown form.

mod command;
mod document;
mod entry;
mod launch;
mod registration;

/// The longest part of a file that a message repeats.
const LONGEST_ECHO: usize = 80;

/// Something from a file as a message repeats it: on one line, and not all of it if there is much.
pub(super) fn echo(text: &str) -> String {
    one_line(text, LONGEST_ECHO)
}

/// At most so many characters of a text; what would break a line or turn it around is written as an escape.
pub(super) fn one_line(text: &str, longest: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        match c {
            _ if count == longest => {
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
