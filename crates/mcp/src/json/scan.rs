//! Finds the members of a JSON object without decoding them. Long strings cost a byte search.
//!
//! Accepts less than JSON: where something is rare or wrong it returns `None`, and the caller asks the JSON library,
//! which also knows what to say about it.

use memchr::memchr2;

/// Maximum nesting depth, one bit of the stack for each level.
const MAX_DEPTH: u32 = 126;

/// Trust in a text that was validated before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Every byte is checked.
    Unchecked,
    /// The text is one JSON value.
    Valid,
}

/// Calls `each` with the name and the value of every member of an object, as written. A name comes without its quotes.
/// Returns `None` if the text is not an object, or has to be read by the JSON library: a name has an escape, or, in an
/// unchecked text, a string has `\u` or anything is between the tokens but spaces.
pub(crate) fn scan_object<'a>(
    text: &'a [u8],
    trust: Trust,
    mut each: impl FnMut(&'a [u8], &'a [u8]),
) -> Option<()> {
    if trust == Trust::Unchecked && has_control_character(text) {
        return None;
    }
    let scan = Scan { text, trust };
    let mut at = scan.skip_spaces(scan.expect(0, b'{')?);
    if scan.byte(at)? == b'}' {
        return scan.end(at + 1);
    }
    loop {
        let name_end = scan.string_end(at)?;
        let name = &text[at + 1..name_end - 1];
        if name.contains(&b'\\') {
            return None;
        }
        let value = scan.skip_colon(name_end)?;
        let end = scan.value_end(value)?;
        each(name, &text[value..end]);
        at = scan.skip_spaces(end);
        match scan.byte(at)? {
            b',' => at = scan.skip_spaces(at + 1),
            b'}' => return scan.end(at + 1),
            _ => return None,
        }
    }
}

/// Searches for a control character, 16 bytes or more at a time.
fn has_control_character(text: &[u8]) -> bool {
    text.chunks(4 << 10).any(|chunk| chunk.iter().fold(false, |found, byte| found | (*byte < b' ')))
}

#[derive(Clone, Copy)]
struct Scan<'a> {
    text: &'a [u8],
    trust: Trust,
}

impl Scan<'_> {
    fn byte(self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn expect(self, at: usize, byte: u8) -> Option<usize> {
        (self.byte(at)? == byte).then_some(at + 1)
    }

    /// Checks that nothing but spaces follows.
    fn end(self, at: usize) -> Option<()> {
        (self.skip_spaces(at) == self.text.len()).then_some(())
    }

    fn skip_spaces(self, mut at: usize) -> usize {
        while matches!(self.byte(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            at += 1;
        }
        at
    }

    /// Returns the start of the value that belongs to the name at this position.
    fn skip_name(self, at: usize) -> Option<usize> {
        self.skip_colon(self.string_end(at)?)
    }

    /// Returns the start of the value after the end of its name.
    fn skip_colon(self, at: usize) -> Option<usize> {
        Some(self.skip_spaces(self.expect(self.skip_spaces(at), b':')?))
    }

    /// Returns the position after a string.
    fn string_end(self, at: usize) -> Option<usize> {
        let mut at = self.expect(at, b'"')?;
        loop {
            at += find_quote_or_escape(self.text.get(at..)?)?;
            if self.text[at] == b'"' {
                return Some(at + 1);
            }
            let is_simple =
                matches!(self.byte(at + 1)?, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't');
            if !is_simple && self.trust == Trust::Unchecked {
                return None;
            }
            at += 2;
        }
    }

    /// Returns the position after a value.
    fn value_end(self, mut at: usize) -> Option<usize> {
        // The lowest bit says whether the innermost container is an object.
        let (mut depth, mut objects) = (0, 0_u128);
        loop {
            let first = self.byte(at)?;
            at = match first {
                b'"' => self.string_end(at)?,
                b'{' | b'[' if self.trust == Trust::Valid => self.container_end(at)?,
                b'{' | b'[' => {
                    let inside = self.skip_spaces(at + 1);
                    if self.byte(inside)? == closing(first) {
                        inside + 1
                    } else if depth == MAX_DEPTH {
                        return None;
                    } else {
                        depth += 1;
                        objects = (objects << 1) | u128::from(first == b'{');
                        at = if first == b'{' { self.skip_name(inside)? } else { inside };
                        continue;
                    }
                }
                _ => self.scalar_end(at)?,
            };
            loop {
                if depth == 0 {
                    return Some(at);
                }
                at = self.skip_spaces(at);
                let is_object = objects & 1 == 1;
                match self.byte(at)? {
                    b',' => {
                        let next = self.skip_spaces(at + 1);
                        at = if is_object { self.skip_name(next)? } else { next };
                        break;
                    }
                    byte if byte == if is_object { b'}' } else { b']' } => {
                        at += 1;
                        depth -= 1;
                        objects >>= 1;
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Returns the position after an object or an array that is valid.
    fn container_end(self, mut at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        loop {
            match self.byte(at)? {
                b'"' => {
                    at = self.string_end(at)?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }

    /// Returns the position after a number or a literal.
    fn scalar_end(self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        for literal in [&b"true"[..], b"false", b"null"] {
            if rest.starts_with(literal) {
                return Some(at + literal.len());
            }
        }
        self.number_end(at)
    }

    fn number_end(self, at: usize) -> Option<usize> {
        let at = if self.byte(at)? == b'-' { at + 1 } else { at };
        let mut end = match self.byte(at)? {
            b'0' => at + 1,
            b'1'..=b'9' => self.digits_end(at)?,
            _ => return None,
        };
        if self.byte(end) == Some(b'.') {
            end = self.digits_end(end + 1)?;
        }
        if matches!(self.byte(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.byte(end + 1), Some(b'+' | b'-')));
            end = self.digits_end(end + 1 + sign)?;
        }
        Some(end)
    }

    /// Returns the position after at least one digit.
    fn digits_end(self, at: usize) -> Option<usize> {
        let digits = self.text.get(at..)?.iter().take_while(|it| it.is_ascii_digit()).count();
        (digits > 0).then_some(at + digits)
    }
}

/// Returns the position of the first quote or backslash. Names and most values are short, so the first bytes are compared
/// in two words: setting up a longer search costs more.
fn find_quote_or_escape(text: &[u8]) -> Option<usize> {
    let Some((words, rest)) = text.split_first_chunk::<16>() else {
        return text.iter().position(|it| matches!(it, b'"' | b'\\'));
    };
    let [first, second] = [0, 8].map(|start| {
        let mut word = [0; 8];
        word.copy_from_slice(&words[start..start + 8]);
        find_in_word(u64::from_le_bytes(word))
    });
    first.or(second.map(|at| at + 8)).or_else(|| memchr2(b'"', b'\\', rest).map(|at| at + 16))
}

/// Returns the position of the first quote or backslash among eight bytes.
fn find_in_word(word: u64) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    let [quotes, escapes] = [b'"', b'\\'].map(|byte| word ^ (ONES * u64::from(byte)));
    // Sets the high bit of each byte that is zero; above the first such byte it may set others.
    let zeros = |it: u64| it.wrapping_sub(ONES) & !it & HIGH_BITS;
    let found = zeros(quotes) | zeros(escapes);
    (found != 0).then_some(found.trailing_zeros() as usize / 8)
}

fn closing(opening: u8) -> u8 {
    if opening == b'{' { b'}' } else { b']' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Members;
    use proptest::prelude::*;

    fn scanned(text: &str, trust: Trust) -> Option<Vec<(String, String)>> {
        let mut members = Vec::new();
        let owned = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
        scan_object(text.as_bytes(), trust, |name, value| members.push((owned(name), owned(value))))?;
        Some(members)
    }

    fn decoded(text: &str) -> Option<Vec<(String, String)>> {
        let members: Members<'_> = serde_json::from_str(text).ok()?;
        Some(members.0.into_iter().map(|(name, value)| (name.into_owned(), value.get().to_owned())).collect())
    }

    #[test]
    fn plain_objects_are_scanned() {
        for text in [
            "{}",
            "{ } ",
            r#"{"a":1}"#,
            r#"{ "a" : -0.5e+10 , "b":[ ], "c":[1,[2,{"d":{}}]],"e":"x\"\\\n" } "#,
            r#"{"a":true,"b":false,"c":null,"":"ünïcödé"}"#,
            r#"{"a":{"b":{"c":[{},{"d":""}]}},"a":2}"#,
        ] {
            for trust in [Trust::Unchecked, Trust::Valid] {
                assert_eq!(scanned(text, trust), decoded(text), "{text}");
                assert!(scanned(text, trust).is_some(), "{text}");
            }
        }
        let pretty = "{\n\t\"a\": \"\\u00e9\"\r\n}";
        assert_eq!(scanned(pretty, Trust::Valid), decoded(pretty));
        assert_eq!(scanned(pretty, Trust::Unchecked), None);
    }

    #[test]
    fn broken_and_rare_texts_are_left_to_the_library() {
        for text in [
            "",
            "{",
            "[]",
            "1",
            "{}x",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":-}"#,
            r#"{"a":+1}"#,
            r#"{"a":1e}"#,
            r#"{"a":.5}"#,
            r#"{"a":tru}"#,
            r#"{"a":nulll}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1}}"#,
            r#"{"a":{"b":1]}"#,
            r#"{"a":"x}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12"}"#,
            r#"{a:1}"#,
            r#"{"a" 1}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":"\"#,
            "{\"a\":\"\n\"}",
            r#"{"\u0061":1}"#,
            r#"{"a\n":1}"#,
        ] {
            assert_eq!(scanned(text, Trust::Unchecked), None, "{text}");
        }
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(127), "]".repeat(127));
        assert_eq!(scanned(&deep, Trust::Unchecked), None);
    }

    proptest! {
        #[test]
        fn quotes_and_escapes_are_found_at_any_distance(text in r#"[ -~é]{0,40}["\\]?[ -~]{0,20}"#) {
            let expected = text.bytes().position(|it| matches!(it, b'"' | b'\\'));
            prop_assert_eq!(find_quote_or_escape(text.as_bytes()), expected);
        }

        #[test]
        fn accepted_texts_are_json_with_the_same_members(
            text in r#"\{("[ab\\]{0,2}" ?: ?([0-9.eE+-]{1,4}|"[^\x00-\x1f]{0,4}"|[\[\]{}:,"a1 \\]{0,12}|true|null),? ?){0,3}\}"#,
        ) {
            if let Some(members) = scanned(&text, Trust::Unchecked) {
                prop_assert_eq!(Some(members), decoded(&text));
            }
        }

        #[test]
        fn changed_messages_are_read_alike(at in 0_usize..90, byte in 0_u8..128) {
            let mut text = br#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"a\nb"}],"x":[1.5e3,-2,{}]}}"#.to_vec();
            text[at] = byte;
            let text = String::from_utf8(text).expect("ASCII");
            if let Some(members) = scanned(&text, Trust::Unchecked) {
                prop_assert_eq!(Some(members), decoded(&text));
            }
        }
    }
}
