//! Parses JSON text into the common document tree. Input that must be JSON is not parsed as YAML, because YAML also
//! accepts comments, anchors and bare words, and does not support JSON's surrogate pairs.

use super::{
    diagnostic::Diagnostics,
    node::{Node, Pair, Value},
    place::Place,
};
use std::collections::HashMap;

/// Maximum nesting depth of objects and arrays.
const DEEPEST: usize = 64;

/// Parses a whole document. `None` means that a diagnostic was recorded. A repeated key is an error too.
pub(crate) fn parse(source: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
    let mut parser = Parser { source, at: 0, depth: 0, diagnostics };
    let root = parser.value().and_then(|root| {
        parser.skip_space();
        if parser.at == source.len() { Some(root) } else { parser.wrong("something follows its end") }
    })?;
    Some(root)
}

struct Parser<'a> {
    source: &'a str,
    at: usize,
    depth: usize,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> Parser<'a> {
    fn value(&mut self) -> Option<Node> {
        self.skip_space();
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.nested(Parser::object)?,
            Some(b'[') => self.nested(Parser::array)?,
            Some(b'"') => Value::plain(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            Some(_) => return self.wrong("a value is expected here"),
            None => return self.wrong("it ends too soon"),
        };
        Some(Node { value, at: Place::new(start, self.at) })
    }

    fn nested(&mut self, read: fn(&mut Parser<'a>) -> Option<Value>) -> Option<Value> {
        if self.depth == DEEPEST {
            self.diagnostics.too_deep(Place::new(self.at, self.at + 1), DEEPEST);
            return None;
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Option<Value> {
        let mut pairs: Vec<Pair> = Vec::new();
        let mut seen: HashMap<String, Place> = HashMap::new();
        self.skip_space();
        if self.take(b'}') {
            return Some(Value::Map(pairs));
        }
        loop {
            self.skip_space();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return self.wrong("a key in double quotes is expected here");
            }
            let key = self.string()?;
            let key_at = Place::new(start, self.at);
            self.skip_space();
            if !self.take(b':') {
                return self.wrong("`:` is expected here");
            }
            let node = self.value()?;
            match seen.get(&key) {
                Some(first) => self.diagnostics.duplicate_key(key_at, &key, *first),
                None => {
                    seen.insert(key.clone(), key_at);
                    pairs.push(Pair { key, key_at, node });
                }
            }
            self.skip_space();
            match () {
                () if self.take(b',') => {}
                () if self.take(b'}') => return Some(Value::Map(pairs)),
                () => return self.wrong("`,` or `}` is expected here"),
            }
        }
    }

    fn array(&mut self) -> Option<Value> {
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Some(Value::Seq(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            match () {
                () if self.take(b',') => {}
                () if self.take(b']') => return Some(Value::Seq(items)),
                () => return self.wrong("`,` or `]` is expected here"),
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let bytes = self.source.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return self.wrong("this string does not end"),
            }
        }
        let text = self.source.get(self.at..=end).and_then(|it| serde_json::from_str(it).ok());
        if text.is_none() {
            return self.wrong("this string has an escape or a character that JSON does not know");
        }
        self.at = end + 1;
        text
    }

    fn number(&mut self) -> Option<Value> {
        let rest = &self.source[self.at..];
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
        let text = &rest[..length];
        let value = match (text.parse::<i128>(), serde_json::from_str::<serde_json::Number>(text)) {
            (_, Err(_)) => return self.wrong("this is not a number"),
            (Ok(whole), Ok(_)) => Value::Int(whole),
            (Err(_), Ok(number)) => Value::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        };
        self.at += length;
        Some(value)
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        if !self.source[self.at..].starts_with(word) {
            return self.wrong("a value is expected here");
        }
        self.at += word.len();
        Some(value)
    }

    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn wrong<T>(&mut self, what: &str) -> Option<T> {
        let end = self.source[self.at..].chars().next().map_or(0, char::len_utf8);
        self.diagnostics.json_syntax(Place::new(self.at, self.at + end), what);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> Option<String> {
        let mut diagnostics = Diagnostics::new("body", text);
        let root = parse(text, &mut diagnostics);
        let first = diagnostics.items().first().map(|it| it.message.clone());
        assert!(root.is_some() || first.is_some(), "{text}: neither a tree nor a complaint");
        first
    }

    #[test]
    fn only_json() {
        for text in [
            "{}",
            " [1, -2.5e3, true, false, null, \"x\"]\n",
            "\t{\"a\":\t{\"b\": [] }}",
            r#""😀 \u00e9 \/ ü""#,
            "123456789012345678901234567890",
        ] {
            assert_eq!(complaint(text), None, "{text}");
        }
        for (text, expected) in [
            ("", "it ends too soon"),
            ("{", "a key in double quotes"),
            ("{\"a\" 1}", "`:` is expected"),
            ("{\"a\": 1,}", "a key in double quotes"),
            ("[1 2]", "`,` or `]`"),
            ("{} {}", "follows its end"),
            ("NaN", "a value is expected"),
            ("nul", "a value is expected"),
            ("01", "not a number"),
            ("1e999999x", "not a number"),
            ("'a'", "a value is expected"),
            ("# a\n{}", "a value is expected"),
            ("\"\u{1}\"", "that JSON does not know"),
            (r#""\x""#, "that JSON does not know"),
            (r#""\ud83d""#, "that JSON does not know"),
            ("\"a", "does not end"),
            ("\"a\\", "does not end"),
            ("{\"a\": 1, \"a\": 2}", "the key 'a' is there twice"),
        ] {
            let found = complaint(text).unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found}");
        }
        assert!(complaint(&"[".repeat(100_000)).is_some_and(|it| it.contains("nests deeper")));
    }

    #[test]
    fn everything_has_its_place() {
        let text = r#"{ "a": ["é", 12] }"#;
        let root = parse(text, &mut Diagnostics::new("body", text)).expect("it is JSON");
        let Some(Node { value: Value::Seq(items), .. }) = root.child("a") else { panic!("a list") };
        let written: Vec<&str> = items.iter().map(|it| &text[it.at.start..it.at.end]).collect();
        assert_eq!(written, ["\"é\"", "12"]);
    }
}
