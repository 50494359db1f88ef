//! Splits Rust source into words and punctuation. Drops comments, literals and lifetimes, so that a rule sees only
//! code.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

impl Token<'_> {
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(is_word_start)
    }
}

/// Returns the tokens of a source file.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = dropped(rest).unwrap_or_else(|| {
            let length = match first {
                _ if rest.starts_with("::") => 2,
                _ if is_word_start(first) => word_length(rest),
                _ => first.len_utf8(),
            };
            found.push(Token { text: &rest[..length], line });
            length
        });
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

/// Returns the tokens of a source file without the items that are compiled for tests only, and the names of the test
/// modules that have files of their own.
pub(super) fn without_tests(text: &str) -> (Vec<Token<'_>>, Vec<&str>) {
    let all = tokens(text);
    let (mut kept, mut modules, mut at) = (Vec::new(), Vec::new(), 0);
    while at < all.len() {
        if !starts_test_item(&all[at..]) {
            kept.push(all[at]);
            at += 1;
            continue;
        }
        let end = at + item_length(&all[at..]);
        let item: Vec<&str> = all[at..end].iter().map(|it| it.text).collect();
        if let [.., "mod", name, ";"] = item[..] {
            modules.push(name);
        }
        at = end;
    }
    (kept, modules)
}

fn starts_test_item(tokens: &[Token<'_>]) -> bool {
    let is = |words: &[&str]| tokens.iter().map(|it| it.text).take(words.len()).eq(words.iter().copied());
    is(&["#", "[", "cfg", "(", "test", ")", "]"]) || is(&["#", "[", "cfg", "(", "all", "(", "test"])
}

/// Returns the length of an item with its attributes: up to a semicolon or a closing brace outside of all brackets.
fn item_length(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(token.text, ";" | "}") {
            let is_use = tokens.get(at + 1).is_some_and(|it| it.text == ";");
            return at + 1 + usize::from(is_use);
        }
    }
    tokens.len()
}

/// Returns the length of white space, a comment, a literal or a lifetime at the start of the text.
fn dropped(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first.is_whitespace() {
        return Some(first.len_utf8());
    }
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(text.find("*/").map_or(text.len(), |end| end + 2));
    }
    if first.is_ascii_digit() {
        return Some(word_length(text));
    }
    let prefix = text.len() - text.trim_start_matches(['b', 'c', 'r']).len();
    let (prefix, rest) = text.split_at(if prefix <= 2 { prefix } else { 0 });
    let length = match rest.chars().next()? {
        '"' | '#' if prefix.ends_with('r') => raw_string_length(rest),
        '"' => Some(quoted_length(rest, '"')),
        '\'' if prefix.is_empty() || prefix == "b" => Some(character_length(rest)),
        _ => None,
    };
    length.map(|it| prefix.len() + it)
}

fn raw_string_length(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let inside = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(inside.find(&end).map_or(text.len(), |at| hashes + 1 + at + end.len()))
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// Returns the length of a character literal or of a lifetime.
fn character_length(text: &str) -> usize {
    let mut inside = text.chars().skip(1);
    match (inside.next(), inside.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted_length(text, '\''),
        _ => 1 + word_length(&text[1..]),
    }
}

fn word_length(text: &str) -> usize {
    let start = if text.starts_with("r#") { 2 } else { 0 };
    let end = text[start..].find(|c: char| !c.is_alphanumeric() && c != '_');
    end.map_or(text.len(), |end| start + end)
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

#[test]
fn comments_literals_and_lifetimes_are_dropped() {
    let text = r####"
fn a<'b>(c: &'b str) -> [u8; 12] { // d
    /* e
    */ "f \" g" r#"h " i"# b"j" b'k' '\'' 'l' r"m" r#fn ::n
}"####;
    let found: Vec<&str> = tokens(text).iter().map(|it| it.text).collect();
    let expected = "fn a < > ( c : & str ) - > [ u8 ; ] { r#fn :: n }";
    assert_eq!(found.join(" "), expected);
    assert_eq!(tokens(text).last().map(|it| it.line), Some(5));
}

#[test]
fn test_items_are_dropped() {
    let text = "mod a; #[cfg(test)] mod b; #[cfg(test)] use c::{d}; fn e() {} #[cfg(test)] mod f { g! {} } h";
    let (kept, modules) = without_tests(text);
    let kept: Vec<&str> = kept.iter().map(|it| it.text).collect();
    assert_eq!(kept.join(" "), "mod a ; fn e ( ) { } h");
    assert_eq!(modules, ["b"]);
}
