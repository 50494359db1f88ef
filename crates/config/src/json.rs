//! Parses JSON text into the common document tree. Input that must be JSON is not parsed as YAML, because YAML also
//! accepts comments, anchors and bare words, and does not support JSON's surrogate pairs.

use super::{
    diagnostic::Diagnostics,
    node::{Node, Pair, Value},
    place::Place,
};
use std::collections::HashMap;

/// Maximum nesting depth of objects and arrays.
const MAX_DEPTH: usize = 64;

/// Parses a whole document. `None` means that a diagnostic was recorded. A repeated key is an error too.
pub(crate) fn parse(source: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
    let mut parser = Parser { source, at: 0, depth: 0, diagnostics };
    let root = parser.value().and_then(|root| {
        parser.skip_space();
        if parser.at == source.len() {
            Some(root)
        } else {
            parser.syntax_error("unexpected text after the end")
        }
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
            Some(_) => return self.syntax_error("expected a value"),
            None => return self.syntax_error("unexpected end of input"),
        };
        Some(Node { value, at: Place::new(start, self.at) })
    }

    fn nested(&mut self, read: fn(&mut Parser<'a>) -> Option<Value>) -> Option<Value> {
        if self.depth == MAX_DEPTH {
            self.diagnostics.too_deep(Place::new(self.at, self.at + 1), MAX_DEPTH);
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
                return self.syntax_error("expected a key in double quotes");
            }
            let key = self.string()?;
            let key_at = Place::new(start, self.at);
            self.skip_space();
            if !self.take(b':') {
                return self.syntax_error("expected `:`");
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
                () => return self.syntax_error("expected `,` or `}`"),
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
                () => return self.syntax_error("expected `,` or `]`"),
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
                None => return self.syntax_error("unterminated string"),
            }
        }
        let text = self.source.get(self.at..=end).and_then(|it| serde_json::from_str(it).ok());
        if text.is_none() {
            return self.syntax_error("invalid escape or character in a string");
        }
        self.at = end + 1;
        text
    }

    fn number(&mut self) -> Option<Value> {
        let rest = &self.source[self.at..];
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
        let text = &rest[..length];
        let value = match (text.parse::<i128>(), serde_json::from_str::<serde_json::Number>(text)) {
            (_, Err(_)) => return self.syntax_error("invalid number"),
            (Ok(whole), Ok(_)) => Value::Int(whole),
            (Err(_), Ok(number)) => Value::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        };
        self.at += length;
        Some(value)
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        if !self.source[self.at..].starts_with(word) {
            return self.syntax_error("expected a value");
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

    fn syntax_error<T>(&mut self, what: &str) -> Option<T> {
        let end = self.source[self.at..].chars().next().map_or(0, char::len_utf8);
        self.diagnostics.json_syntax(Place::new(self.at, self.at + end), what);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_message(text: &str) -> Option<String> {
        let mut diagnostics = Diagnostics::new("body", text);
        let root = parse(text, &mut diagnostics);
        let first = diagnostics.items().first().map(|it| it.message.clone());
        assert!(root.is_some() || first.is_some(), "{text}: neither a tree nor a message");
        first
    }

    #[test]
    fn only_valid_json_is_parsed() {
        for text in [
            "{}",
            " [1, -2.5e3, true, false, null, \"x\"]\n",
            "\t{\"a\":\t{\"b\": [] }}",
            r#""😀 \u00e9 \/ ü""#,
            "123456789012345678901234567890",
        ] {
            assert_eq!(first_message(text), None, "{text}");
        }
        for (text, expected) in [
            ("", "unexpected end of input"),
            ("{", "a key in double quotes"),
            ("{\"a\" 1}", "expected `:`"),
            ("{\"a\": 1,}", "a key in double quotes"),
            ("[1 2]", "`,` or `]`"),
            ("{} {}", "text after the end"),
            ("NaN", "expected a value"),
            ("nul", "expected a value"),
            ("01", "invalid number"),
            ("1e999999x", "invalid number"),
            ("'a'", "expected a value"),
            ("# a\n{}", "expected a value"),
            ("\"\u{1}\"", "invalid escape or character"),
            (r#""\x""#, "invalid escape or character"),
            (r#""\ud83d""#, "invalid escape or character"),
            ("\"a", "unterminated string"),
            ("\"a\\", "unterminated string"),
            ("{\"a\": 1, \"a\": 2}", "duplicate key 'a'"),
        ] {
            let found = first_message(text).unwrap_or_default();
            assert!(found.contains(expected), "{text}: {found}");
        }
        assert!(first_message(&"[".repeat(100_000)).is_some_and(|it| it.contains("nests deeper")));
    }

    #[test]
    fn nodes_have_source_places() {
        let text = r#"{ "a": ["é", 12] }"#;
        let root = parse(text, &mut Diagnostics::new("body", text)).expect("it is JSON");
        let Some(Node { value: Value::Seq(items), .. }) = root.child("a") else { panic!("a list") };
        let written: Vec<&str> = items.iter().map(|it| &text[it.at.start..it.at.end]).collect();
        assert_eq!(written, ["\"é\"", "12"]);
    }
}
