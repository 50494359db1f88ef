//! Formats JSON with line breaks. Works on the text, so that numbers keep every digit.

use wharf_mcp::Raw;

const INDENT: &str = "  ";

/// Formats the text with line breaks. `None` if it is not a JSON object or array.
pub(crate) fn pretty(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) || Raw::parse(text.to_owned()).is_err() {
        return None;
    }
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut rest) = (0usize, text);
    while let Some(c) = rest.chars().next() {
        let length = if c == '"' { string_length(rest) } else { c.len_utf8() };
        let (token, tail) = rest.split_at(length);
        rest = tail;
        match c {
            '{' | '[' => {
                out.push(c);
                if let Some(empty) = rest.trim_start().strip_prefix(if c == '{' { '}' } else { ']' }) {
                    out.push(if c == '{' { '}' } else { ']' });
                    rest = empty;
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ if c.is_ascii_whitespace() => {}
            _ => out.push_str(token),
        }
    }
    Some(out)
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str(INDENT));
}

/// Returns the length of the string at the start of the text, including its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_gets_line_breaks_and_keeps_its_digits() {
        for (text, expected) in [
            (
                r#"{"a":12345678901234567890123,"b":[1e99999,{"c":"x\"},{ \\"}],"d":{},"e":[ ]}"#,
                Some(concat!(
                    "{\n  \"a\": 12345678901234567890123,\n  \"b\": [\n    1e99999,\n    {\n",
                    "      \"c\": \"x\\\"},{ \\\\\"\n    }\n  ],\n  \"d\": {},\n  \"e\": []\n}"
                )),
            ),
            (" [\"é\"]\n", Some("[\n  \"é\"\n]")),
            ("{}", Some("{}")),
            ("12", None),
            ("\"text\"", None),
            ("{not json}", None),
            ("[1] and more", None),
        ] {
            assert_eq!(pretty(text).as_deref(), expected, "{text}");
        }
    }
}
