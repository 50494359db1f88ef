//! Parses JSON as editors write it: with comments, trailing commas, and perhaps a byte order mark.

use super::import_error::ImportError;
use serde_json::Value;

/// Parses the text. The JSON parser limits the nesting depth.
pub(crate) fn parse(text: &str) -> Result<Value, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ImportError::NotJson("it is empty".to_owned()));
    }
    serde_json::from_str(&plain(text)).map_err(|error| ImportError::NotJson(error.to_string()))
}

/// Replaces every comment and trailing comma with spaces. The length stays the same, so that lines and columns do
/// too.
pub(crate) fn plain(text: &str) -> String {
    blank_out(text, true)
}

/// Replaces comments with spaces, but keeps trailing commas.
pub(crate) fn without_comments(text: &str) -> String {
    blank_out(text, false)
}

fn blank_out(text: &str, commas_too: bool) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    // The last two bytes that are not white space or comments, and the position of the last one.
    let (mut before, mut last, mut last_at) = (0, 0, 0);
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'/', b'/', ..] => at + line_length(&bytes[at..]),
            [b'/', b'*', ..] => at + block_length(&bytes[at..]),
            [b'"', ..] => at + string_length(&bytes[at..]),
            _ => at + 1,
        };
        match bytes[at] {
            b'/' if end > at + 1 => blank(&mut bytes[at..end]),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            byte => {
                let closes = matches!(byte, b'}' | b']');
                if commas_too && closes && last == b',' && !matches!(before, b'{' | b'[' | b',') {
                    bytes[last_at] = b' ';
                }
                (before, last, last_at) = (last, byte, at);
            }
        }
        at = end;
    }
    // Only complete comments were replaced, so the rest is still valid UTF-8.
    String::from_utf8_lossy(&bytes).into_owned()
}

fn line_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|it| matches!(it, b'\n' | b'\r')).unwrap_or(bytes.len())
}

/// Returns the length of a block comment. An unclosed comment extends to the end of the text.
fn block_length(bytes: &[u8]) -> usize {
    let body = bytes.get(2..).unwrap_or_default();
    body.windows(2).position(|it| it == b"*/").map_or(bytes.len(), |at| at + 4)
}

/// Returns the length of a string, including its closing quote.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|it| !matches!(it, b'\n' | b'\r')).for_each(|it| *it = b' ');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_are_accepted() {
        for (text, expected) in [
            ("\u{feff}{}", json!({})),
            ("// first\n{\"a\": 1, // ü\n}", json!({"a": 1})),
            ("{\"a\": [1, 2,\n], /* x\n , */ }", json!({"a": [1, 2]})),
            (r#"{"a": "http://x/*y*/, ]", "b": "\"//,}"}"#, json!({"a": "http://x/*y*/, ]", "b": "\"//,}"})),
            ("[1 /* a */ , /* b */ ]", json!([1])),
            ("[\"\\\\\", 1,]//", json!(["\\", 1])),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in
            ["", " \n", "{", "[,]", "{,}", "[1,,]", "{\"a\": 1 /* open }", "/", "\"", "\"\\", "{} {}", "\0"]
        {
            assert!(matches!(parse(text), Err(ImportError::NotJson(_))), "{text:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(parse(&deep), Err(ImportError::NotJson(_))));
    }

    #[test]
    fn error_positions_are_those_of_the_file() {
        let error = parse("{\n  // a comment\n  \"a\": oops\n}").expect_err("not JSON");
        assert_eq!(error.to_string(), "is not JSON: expected value at line 3 column 8");
    }
}
