//! Masks the parts of a source line that must not be quoted beside a diagnostic.
//!
//! There are two layers. The loader reports the places that it knows to hold secrets: header values, keys and
//! passwords in URLs. The second layer works on lines and masks the text after a key that sounds secret. If the file
//! is too broken to have places, the second layer is stricter: it considers every key on a line, and also masks the
//! lines indented below such a key.

use super::{place::Place, suggest};

/// Words in a key that suggest a secret value.
const SECRET_WORDS: [&str; 9] =
    ["authorization", "token", "secret", "passw", "api_key", "apikey", "api-key", "credential", "cookie"];

/// Maximum length of a key that is considered, in bytes.
const MAX_KEY_BYTES: usize = 128;

/// Returns whether a key of this name usually holds a secret. A limit such as `max_tokens` does not.
pub(crate) fn is_secret_name(key: &str) -> bool {
    let key = key.trim().to_ascii_lowercase();
    let is_limit = key.starts_with("max") && key.ends_with("tokens");
    let looks_secret =
        SECRET_WORDS.iter().any(|word| key.contains(word)) || key.ends_with("_key") || key.ends_with("-key");
    looks_secret && !is_limit
}

/// Returns whether a key is `headers` or a misspelling of it.
pub(crate) fn is_headers_key(key: &str) -> bool {
    let key = key.trim();
    key.eq_ignore_ascii_case("headers")
        || (5..=9).contains(&key.len()) && suggest::closest(key, ["headers"].into_iter()).is_some()
}

/// Returns whether a key has the form `X-Something`, which can only be a header.
fn is_custom_header(key: &str) -> bool {
    key.get(..2).is_some_and(|it| it.eq_ignore_ascii_case("x-"))
}

/// All places of a file that must not be quoted, sorted and without overlaps.
pub(crate) struct Mask {
    hidden: Vec<Place>,
}

/// A masked part of the source. It keeps the number of characters, but not the number of bytes.
pub(crate) struct MaskedQuote {
    pub(crate) text: String,
    from: usize,
    /// Multi-byte characters that became a star: the end of each in the source, and the total number of bytes lost so
    /// far.
    lost: Vec<(usize, usize)>,
}

impl Mask {
    /// Builds the mask. `broken` means that `known` may not contain every secret.
    pub(crate) fn new(source: &str, known: &[Place], broken: bool) -> Mask {
        let mut hidden = known.to_vec();
        match broken {
            true => hide_suspicious(source, &mut hidden),
            false => hidden.extend(secret_lines(source)),
        }
        hidden.sort();
        hidden.dedup_by(|next, before| {
            let overlaps = next.start <= before.end;
            if overlaps {
                before.end = before.end.max(next.end);
            }
            overlaps
        });
        Mask { hidden }
    }

    /// Returns a part of the source with hidden text replaced by stars.
    pub(crate) fn quote(&self, source: &str, part: Place) -> MaskedQuote {
        let mut masked = MaskedQuote { text: String::new(), from: part.start, lost: Vec::new() };
        let mut at = part.start;
        let first = self.hidden.partition_point(|it| it.end <= part.start);
        for place in self.hidden[first..].iter().take_while(|it| it.start < part.end) {
            let (start, end) = (place.start.max(at), place.end.min(part.end));
            let (Some(before), Some(secret)) = (source.get(at..start), source.get(start..end)) else {
                continue;
            };
            masked.text.push_str(before);
            masked.push_masked(secret, start);
            at = end;
        }
        masked.text.push_str(source.get(at..part.end).unwrap_or_default());
        masked
    }
}

impl MaskedQuote {
    /// Converts a byte offset of the source to an offset in the quotation.
    pub(crate) fn position(&self, offset: usize) -> usize {
        let passed = self.lost.partition_point(|(end, _)| *end <= offset);
        let lost = passed.checked_sub(1).map_or(0, |last| self.lost[last].1);
        let at = offset.saturating_sub(self.from + lost);
        self.text.floor_char_boundary(at)
    }

    /// Replaces every character by a star, except white space and `${NAME}`, which only names a secret.
    fn push_masked(&mut self, secret: &str, mut at: usize) {
        let mut rest = secret;
        while let Some(c) = rest.chars().next() {
            let length = variable_length(rest).unwrap_or(c.len_utf8());
            at += length;
            match length > c.len_utf8() || c.is_whitespace() {
                true => self.text.push_str(&rest[..length]),
                false => {
                    self.text.push('*');
                    if length > 1 {
                        let before = self.lost.last().map_or(0, |(_, lost)| *lost);
                        self.lost.push((at, before + length - 1));
                    }
                }
            }
            rest = &rest[length..];
        }
    }
}

/// Returns the length of a `${NAME}` at the start of the text.
fn variable_length(text: &str) -> Option<usize> {
    let name = text.strip_prefix("${")?;
    let length = name.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    name[length..].starts_with('}').then_some(length + 3)
}

/// Returns the private parts of a URL as byte ranges: the user info and the query.
pub(crate) fn private_parts(url: &str) -> impl Iterator<Item = Place> {
    let scheme = url.find("://");
    let host = scheme.map_or(0, |at| at + 3);
    // Text without a scheme may still be an attempt at a URL with a password.
    let authority = if scheme.is_some() { url[host..].split(['/', '?', '#']).next() } else { Some(url) };
    let userinfo = authority.and_then(|it| it.rfind('@'));
    let userinfo = userinfo.map(|length| Place::new(host, host + length));
    let query = url.find('?').map(|at| Place::new(at + 1, url.len()));
    userinfo.into_iter().chain(query)
}

/// Hides the private parts of every URL on a line.
fn hide_url_secrets(line: &str, start: usize, hidden: &mut Vec<Place>) {
    let mut from = 0;
    while let Some(at) = line[from..].find("://").map(|at| from + at) {
        let rest = &line[at..];
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(rest.len());
        let base = start + at;
        hidden.extend(private_parts(&rest[..length]).map(|it| Place::new(base + it.start, base + it.end)));
        from = at + length;
    }
}

/// Returns the text after each key that begins a line and sounds secret.
fn secret_lines(source: &str) -> impl Iterator<Item = Place> + '_ {
    let mut start = 0;
    source.split_inclusive('\n').filter_map(move |line| {
        let line_start = start;
        start += line.len();
        let (key, _) = line.split_once(':')?;
        // A header outside of `headers`, for example wrongly indented, is not among the known places.
        let looks_secret = key
            .split(|c: char| !is_word(c))
            .any(|it| it.len() > 3 && (is_secret_name(it) || is_custom_header(it)));
        looks_secret.then(|| Place::new(line_start + key.len() + 1, line_start + line.trim_end().len()))
    })
}

/// Relation of a line to a preceding key that sounds secret.
#[derive(Clone, Copy)]
enum SecretContext {
    Nothing,
    /// The key at this column has no value on its line. The next line is its value, whatever its indentation.
    Next(usize),
    /// All lines indented deeper than this column belong to the key's value.
    Block(usize),
    /// The key's value has this many unclosed `{` or `[`.
    Flow(usize),
}

/// Hides the text after a key that sounds secret, on its line and on the lines that belong to it.
fn hide_suspicious(source: &str, hidden: &mut Vec<Place>) {
    let mut context = SecretContext::Nothing;
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        hide_url_secrets(line, start, hidden);
        let from = match context {
            _ if line.trim().is_empty() => None,
            SecretContext::Flow(_) => Some(0),
            SecretContext::Next(_) => Some(value_start(line)),
            SecretContext::Block(column) if belongs_to_key(line, column) => Some(value_start(line)),
            _ => None,
        };
        if let Some(from) = from {
            hidden.push(Place::new(start + from, start + line.trim_end().len()));
            context = match context {
                SecretContext::Flow(depth) => track_brackets(depth, line, SecretContext::Nothing),
                SecretContext::Next(column) => SecretContext::Block(column),
                other => other,
            };
        } else if !line.trim().is_empty() {
            context = SecretContext::Nothing;
            if let Some((column, behind)) = find_secret_key(line) {
                hidden.push(Place::new(start + behind, start + line.trim_end().len()));
                let value = line[behind..].trim_start();
                context = match value.starts_with(['{', '[']) {
                    true => track_brackets(0, value, SecretContext::Block(column)),
                    false if value.is_empty() => SecretContext::Next(column),
                    false => SecretContext::Block(column),
                };
            }
        }
        start += line.len();
    }
}

/// Returns whether a line belongs to the value of a key at this column: it is indented deeper, or it is a list at the
/// same column.
fn belongs_to_key(line: &str, column: usize) -> bool {
    let indent = line.len() - line.trim_start().len();
    indent > column || indent == column && line[indent..].starts_with(['-', '{', '['])
}

/// Returns the start of the value on a line: after its key or, without a key, after the indentation.
fn value_start(line: &str) -> usize {
    let indent = line.len() - line.trim_start().len();
    line.find(": ").map_or(indent, |at| at + 1)
}

/// Tracks the depth of open brackets after this text. Returns `closed` if none is open.
fn track_brackets(depth: usize, text: &str, closed: SecretContext) -> SecretContext {
    let depth = text.bytes().fold(depth, |depth, b| match b {
        b'{' | b'[' => depth + 1,
        b'}' | b']' => depth.saturating_sub(1),
        _ => depth,
    });
    if depth > 0 { SecretContext::Flow(depth) } else { closed }
}

/// Finds the first key of a line that sounds secret or is `headers`. Returns its column and the start of its value.
fn find_secret_key(line: &str) -> Option<(usize, usize)> {
    let mut first = true;
    for (at, _) in line.match_indices([':', '=']) {
        let before = line[..at].trim_end_matches([' ', '\t', '"', '\'']);
        let earliest = before.floor_char_boundary(before.len().saturating_sub(MAX_KEY_BYTES));
        let window = &before[earliest..];
        let word = window.rfind(|c: char| !is_word(c)).map_or(window, |end| {
            let next = window[end..].chars().next().map_or(1, char::len_utf8);
            &window[end + next..]
        });
        let looks_secret = |word: &str| {
            word.len() > 3 && (is_headers_key(word) || is_custom_header(word) || is_secret_name(word))
        };
        // At the start of a line, `My secret: x` counts too.
        if looks_secret(word) || first && window.split(|c: char| !is_word(c)).any(looks_secret) {
            return Some((before.len() - word.len(), at + 1));
        }
        first = false;
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote(source: &str, hidden: &[Place]) -> MaskedQuote {
        Mask::new(source, hidden, true).quote(source, Place::new(0, source.len()))
    }

    #[test]
    fn secrets_are_masked() {
        for (source, hidden, expected) in [
            ("a: hunter2 b", vec![Place::new(3, 10)], "a: ******* b"),
            ("Authorization: Bearer abc\nb: c", vec![], "Authorization: ****** ***\nb: c"),
            ("  MY_TOKEN: abc", vec![], "  MY_TOKEN: ***"),
            ("  MY_TOKEN: ${X}", vec![], "  MY_TOKEN: ${X}"),
            ("  MY_TOKEN: ${X:-abc}", vec![], "  MY_TOKEN: *********"),
            ("  MY_TOKEN: Bearer ${X} ab", vec![], "  MY_TOKEN: ****** ${X} **"),
            ("  MY_TOKEN: ${X", vec![], "  MY_TOKEN: ***"),
            ("x: ü1", vec![Place::new(3, 6)], "x: **"),
            ("overlap", vec![Place::new(0, 4), Place::new(2, 6)], "******p"),
            ("max_tokens: 5", vec![], "max_tokens: 5"),
            ("a: {x: 1, token: abc}", vec![], "a: {x: 1, token: ****"),
            ("{\"api_key\":\"abc\"}", vec![], "{\"api_key\":******"),
            ("api_key = \"abc\"", vec![], "api_key = *****"),
            ("headers:\n  X: abc\n  - y\nz: 1", vec![], "headers:\n  X: ***\n  * *\nz: 1"),
            ("headers:\n- X: abc\nz: 1", vec![], "headers:\n- X: ***\nz: 1"),
            ("- headers:\n    X: abc\n- z: 1", vec![], "- headers:\n    X: ***\n- z: 1"),
            ("headers: {X: a,\nY: b}\nz: 1", vec![], "headers: *** **\n** **\nz: 1"),
            ("url: 'https://u:p@h/x?k=v'", vec![], "url: 'https://***@h/x?***'"),
            ("headers:\nX: abc\nz: 1", vec![], "headers:\nX: ***\nz: 1"),
            ("heders:\n  X: abc\nz: 1", vec![], "heders:\n  X: ***\nz: 1"),
            ("password: |\n  abc\nz: 1", vec![], "password: *\n  ***\nz: 1"),
        ] {
            assert_eq!(quote(source, &hidden).text, expected);
        }
    }

    #[test]
    fn known_places_need_less_masking() {
        let source = "headers: {X: ${TOKEN:-y}}\nMY_TOKEN: abc\nX-Slipped: abc\na: {token: x}";
        let mask = Mask::new(source, &[], false);
        let text = mask.quote(source, Place::new(0, source.len())).text;
        assert_eq!(text, "headers: {X: ${TOKEN:-y}}\nMY_TOKEN: ***\nX-Slipped: ***\na: {token: x}");
    }

    #[test]
    fn offsets_survive_masking() {
        let source = "TOKEN: schöne ⓛ x\nnext";
        let masked = quote(source, &[]);
        let at = source.find("next").expect("it is there");
        assert_eq!(&masked.text[masked.position(at)..], "next");
        assert_eq!(masked.position(source.len()), masked.text.len());
    }
}
