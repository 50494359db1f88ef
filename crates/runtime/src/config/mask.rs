//! Strikes out what must not be quoted when a source line is shown beside a complaint.
//!
//! Two nets, one behind the other. The loader names the places it knows to hold secrets (header values, keys,
//! passwords in URLs). The second net looks at lines: what stands behind a key that sounds like a secret is struck
//! out too. Where the file is too broken to have places it is drawn tighter: any key of a line counts, and so does
//! what is indented under one.

use super::{place::Place, suggest};

/// Words in a key that make its value look like a secret.
const TELLTALES: [&str; 9] =
    ["authorization", "token", "secret", "passw", "api_key", "apikey", "api-key", "credential", "cookie"];

/// No key that tells anything is longer than this.
const LONGEST_KEY: usize = 128;

/// Whether a key by this name tends to hold a secret. A limit on tokens is none.
pub(crate) fn sounds_secret(key: &str) -> bool {
    let key = key.trim().to_ascii_lowercase();
    let is_limit = key.starts_with("max") && key.ends_with("tokens");
    let tells =
        TELLTALES.iter().any(|word| key.contains(word)) || key.ends_with("_key") || key.ends_with("-key");
    tells && !is_limit
}

/// Whether a key is `headers`, or somebody's attempt at it.
pub(crate) fn means_headers(key: &str) -> bool {
    let key = key.trim();
    key.eq_ignore_ascii_case("headers")
        || (5..=9).contains(&key.len()) && suggest::closest(key, ["headers"].into_iter()).is_some()
}

/// `X-Something`, which is nothing but a header.
fn is_custom_header(key: &str) -> bool {
    key.get(..2).is_some_and(|it| it.eq_ignore_ascii_case("x-"))
}

/// Everything of a file that must not be quoted, in order and without overlaps.
pub(crate) struct Mask {
    hidden: Vec<Place>,
}

/// A part of the source that may be shown. Every character has its place in it, but not every byte.
pub(crate) struct Quotation {
    pub(crate) text: String,
    from: usize,
    /// Where a longer character became a star: one past it in the source, and the bytes lost up to there.
    lost: Vec<(usize, usize)>,
}

impl Mask {
    /// `broken`: the known places are not all there are.
    pub(crate) fn new(source: &str, known: &[Place], broken: bool) -> Mask {
        let mut hidden = known.to_vec();
        match broken {
            true => suspicious(source, &mut hidden),
            false => hidden.extend(lines_that_tell(source)),
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

    /// The source between two places, with what is hidden struck out.
    pub(crate) fn quote(&self, source: &str, part: Place) -> Quotation {
        let mut quotation = Quotation { text: String::new(), from: part.start, lost: Vec::new() };
        let mut at = part.start;
        let first = self.hidden.partition_point(|it| it.end <= part.start);
        for place in self.hidden[first..].iter().take_while(|it| it.start < part.end) {
            let (start, end) = (place.start.max(at), place.end.min(part.end));
            let (Some(before), Some(struck)) = (source.get(at..start), source.get(start..end)) else {
                continue;
            };
            quotation.text.push_str(before);
            quotation.strike_out(struck, start);
            at = end;
        }
        quotation.text.push_str(source.get(at..part.end).unwrap_or_default());
        quotation
    }
}

impl Quotation {
    /// Where a byte of the source is found in the quotation.
    pub(crate) fn position(&self, offset: usize) -> usize {
        let passed = self.lost.partition_point(|(end, _)| *end <= offset);
        let lost = passed.checked_sub(1).map_or(0, |last| self.lost[last].1);
        let at = offset.saturating_sub(self.from + lost);
        self.text.floor_char_boundary(at)
    }

    /// A star for every character, but for white space and for `${NAME}`, which names a secret and is none.
    fn strike_out(&mut self, struck: &str, mut at: usize) {
        let mut rest = struck;
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

/// The length of the `${NAME}` that the text begins with.
fn variable_length(text: &str) -> Option<usize> {
    let name = text.strip_prefix("${")?;
    let length = name.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    name[length..].starts_with('}').then_some(length + 3)
}

/// The private parts of an address: a user's name and password, and the query. All are byte ranges of the text.
pub(crate) fn private_parts(url: &str) -> impl Iterator<Item = Place> {
    let scheme = url.find("://");
    let host = scheme.map_or(0, |at| at + 3);
    // What is no address at all may still have been meant to be one with a password in it.
    let authority = if scheme.is_some() { url[host..].split(['/', '?', '#']).next() } else { Some(url) };
    let userinfo = authority.and_then(|it| it.rfind('@'));
    let userinfo = userinfo.map(|length| Place::new(host, host + length));
    let query = url.find('?').map(|at| Place::new(at + 1, url.len()));
    userinfo.into_iter().chain(query)
}

/// The private parts of every address on a line.
fn addresses(line: &str, start: usize, hidden: &mut Vec<Place>) {
    let mut from = 0;
    while let Some(at) = line[from..].find("://").map(|at| from + at) {
        let rest = &line[at..];
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(rest.len());
        let base = start + at;
        hidden.extend(private_parts(&rest[..length]).map(|it| Place::new(base + it.start, base + it.end)));
        from = at + length;
    }
}

/// What stands behind a key that begins a line and sounds like a secret.
fn lines_that_tell(source: &str) -> impl Iterator<Item = Place> + '_ {
    let mut start = 0;
    source.split_inclusive('\n').filter_map(move |line| {
        let line_start = start;
        start += line.len();
        let (key, _) = line.split_once(':')?;
        // A header that has slipped out of `headers` is in no place that is known.
        let tells = key
            .split(|c: char| !is_word(c))
            .any(|it| it.len() > 3 && (sounds_secret(it) || is_custom_header(it)));
        tells.then(|| Place::new(line_start + key.len() + 1, line_start + line.trim_end().len()))
    })
}

/// What a line stands under.
#[derive(Clone, Copy)]
enum Under {
    Nothing,
    /// A telling key at this column with nothing behind it: the next line is its value, however it is indented.
    Next(usize),
    /// A telling key at this column: whatever is indented deeper is its value.
    Block(usize),
    /// A telling key whose `{` or `[` is not closed yet.
    Flow(usize),
}

/// What stands behind a telling key on its line, and on the lines that belong to it.
fn suspicious(source: &str, hidden: &mut Vec<Place>) {
    let mut under = Under::Nothing;
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        addresses(line, start, hidden);
        let from = match under {
            _ if line.trim().is_empty() => None,
            Under::Flow(_) => Some(0),
            Under::Next(_) => Some(value_start(line)),
            Under::Block(column) if belongs(line, column) => Some(value_start(line)),
            _ => None,
        };
        if let Some(from) = from {
            hidden.push(Place::new(start + from, start + line.trim_end().len()));
            under = match under {
                Under::Flow(depth) => flow(depth, line, Under::Nothing),
                Under::Next(column) => Under::Block(column),
                other => other,
            };
        } else if !line.trim().is_empty() {
            under = Under::Nothing;
            if let Some((column, behind)) = telling_key(line) {
                hidden.push(Place::new(start + behind, start + line.trim_end().len()));
                let value = line[behind..].trim_start();
                under = match value.starts_with(['{', '[']) {
                    true => flow(0, value, Under::Block(column)),
                    false if value.is_empty() => Under::Next(column),
                    false => Under::Block(column),
                };
            }
        }
        start += line.len();
    }
}

/// Whether a line is part of what a key at this column holds: deeper, or a list, which may begin at the same column.
fn belongs(line: &str, column: usize) -> bool {
    let indent = line.len() - line.trim_start().len();
    indent > column || indent == column && line[indent..].starts_with(['-', '{', '['])
}

/// Where the value on a line begins: behind its key, or behind the white space where there is no key.
fn value_start(line: &str) -> usize {
    let indent = line.len() - line.trim_start().len();
    line.find(": ").map_or(indent, |at| at + 1)
}

/// How deep brackets are open after this text; `closed` when none is.
fn flow(depth: usize, text: &str, closed: Under) -> Under {
    let depth = text.bytes().fold(depth, |depth, b| match b {
        b'{' | b'[' => depth + 1,
        b'}' | b']' => depth.saturating_sub(1),
        _ => depth,
    });
    if depth > 0 { Under::Flow(depth) } else { closed }
}

/// The first key of a line that sounds like a secret, or is `headers`: its column, and where its value begins.
fn telling_key(line: &str) -> Option<(usize, usize)> {
    let mut first = true;
    for (at, _) in line.match_indices([':', '=']) {
        let before = line[..at].trim_end_matches([' ', '\t', '"', '\'']);
        let earliest = before.floor_char_boundary(before.len().saturating_sub(LONGEST_KEY));
        let window = &before[earliest..];
        let word = window.rfind(|c: char| !is_word(c)).map_or(window, |end| {
            let next = window[end..].chars().next().map_or(1, char::len_utf8);
            &window[end + next..]
        });
        let telling = |word: &str| {
            word.len() > 3 && (means_headers(word) || is_custom_header(word) || sounds_secret(word))
        };
        // `My secret: x` is telling too, where it begins a line.
        if telling(word) || first && window.split(|c: char| !is_word(c)).any(telling) {
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

    fn quote(source: &str, hidden: &[Place]) -> Quotation {
        Mask::new(source, hidden, true).quote(source, Place::new(0, source.len()))
    }

    #[test]
    fn strikes_out() {
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
    fn strikes_out_less_where_places_are_known() {
        let source = "headers: {X: ${TOKEN:-y}}\nMY_TOKEN: abc\nX-Slipped: abc\na: {token: x}";
        let mask = Mask::new(source, &[], false);
        let text = mask.quote(source, Place::new(0, source.len())).text;
        assert_eq!(text, "headers: {X: ${TOKEN:-y}}\nMY_TOKEN: ***\nX-Slipped: ***\na: {token: x}");
    }

    #[test]
    fn places_stay_true() {
        let source = "TOKEN: schöne ⓛ x\nnext";
        let quotation = quote(source, &[]);
        let at = source.find("next").expect("it is there");
        assert_eq!(&quotation.text[quotation.position(at)..], "next");
        assert_eq!(quotation.position(source.len()), quotation.text.len());
    }
}
