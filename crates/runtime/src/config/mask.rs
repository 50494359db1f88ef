//! Strikes out what must not be quoted when a source line is shown beside a complaint.
//!
//! Two nets, one behind the other. The loader names the places it knows to hold secrets (header values, keys,
//! passwords in URLs). Where the file is too broken to have places, the second net looks at lines: what stands
//! behind a key that sounds like a secret is struck out too.

use super::place::Place;

/// Words in a key that make its value look like a secret.
const TELLTALES: [&str; 9] =
    ["authorization", "token", "secret", "passw", "api_key", "apikey", "api-key", "credential", "cookie"];

/// Whether a key by this name tends to hold a secret.
pub(crate) fn sounds_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    TELLTALES.iter().any(|word| key.contains(word)) || key.ends_with("_key") || key.ends_with("-key")
}

/// The source with the hidden places and suspicious lines struck out; lines and columns stay where they are.
pub(crate) fn strike_out(source: &str, hidden: &[Place]) -> String {
    let mut hidden: Vec<Place> = hidden.to_vec();
    hidden.extend(suspicious(source));
    hidden.sort();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    for place in hidden {
        let (start, end) = (place.start.max(at), place.end.min(source.len()));
        let (Some(before), Some(struck)) = (source.get(at..start), source.get(start..end)) else {
            continue;
        };
        out.push_str(before);
        push_stars(struck, &mut out);
        at = end;
    }
    out.push_str(&source[at..]);
    out
}

/// A star for every character, but for white space and for `${NAME}`, which names a secret and is none.
fn push_stars(struck: &str, out: &mut String) {
    let mut rest = struck;
    while let Some(c) = rest.chars().next() {
        let length = variable_length(rest).unwrap_or(c.len_utf8());
        match length > c.len_utf8() || c.is_whitespace() {
            true => out.push_str(&rest[..length]),
            false => out.push('*'),
        }
        rest = &rest[length..];
    }
}

/// The length of the `${NAME}` that the text begins with.
fn variable_length(text: &str) -> Option<usize> {
    let name = text.strip_prefix("${")?.split('}').next()?;
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_name && text.len() > name.len() + 2).then_some(name.len() + 3)
}

/// What stands behind a secret-sounding key on its line.
fn suspicious(source: &str) -> impl Iterator<Item = Place> + '_ {
    let mut start = 0;
    source.split_inclusive('\n').filter_map(move |line| {
        let line_start = start;
        start += line.len();
        let (key, _) = line.split_once(':')?;
        sounds_secret(key).then(|| Place::new(line_start + key.len() + 1, line_start + line.trim_end().len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(strike_out(source, &hidden), expected);
        }
    }
}
