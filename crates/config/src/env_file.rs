//! Parses env files: one `NAME=value` per line, with quotes and comments. There is no variable expansion. The last
//! value of a repeated name wins.

use std::collections::BTreeMap;

/// Maximum number of names in one env file.
const MAX_NAMES: usize = 2_000;

/// One variable assignment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A line that cannot be parsed. Contains the line number but no text of the line, which may be secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidLine {
    pub(crate) number: usize,
    pub(crate) why: &'static str,
}

/// Reads the variables of an env file. The error names a line, but none of its text, which may be secret.
pub fn parse_env_file(text: &str) -> Result<BTreeMap<String, String>, String> {
    let found = parse(text).map_err(|InvalidLine { number, why }| format!("line {number}: {why}"))?;
    Ok(found.into_iter().map(|Assignment { name, value }| (name, value)).collect())
}

/// Parses an env file. Returns each name once, sorted by name.
pub(crate) fn parse(text: &str) -> Result<Vec<Assignment>, InvalidLine> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut number = 1;
    let mut found = BTreeMap::new();
    while !rest.is_empty() {
        let (assignment, tail) = parse_line(rest).map_err(|why| InvalidLine { number, why })?;
        found.extend(assignment);
        if found.len() > MAX_NAMES {
            return Err(InvalidLine { number, why: "more than 2000 names" });
        }
        number += rest[..rest.len() - tail.len()].matches('\n').count();
        rest = tail;
    }
    Ok(found.into_iter().map(|(name, value)| Assignment { name, value }).collect())
}

/// The assignment on a line, if any, and the text after the line.
type ParsedLine<'a> = (Option<(String, String)>, &'a str);

/// Parses the first line of `text`.
fn parse_line(text: &str) -> Result<ParsedLine<'_>, &'static str> {
    let line = text.split('\n').next().unwrap_or_default();
    if line.trim().is_empty() || line.trim().starts_with('#') {
        return Ok((None, after_line(text)));
    }
    let (name, _) = line.split_once('=').ok_or("expected NAME=value")?;
    let bare = name.trim();
    let bare = bare.strip_prefix("export ").map_or(bare, str::trim_start);
    if !is_name(bare) {
        return Err("a name consists of letters, digits, `_`, `.` and `-`, and does not start with a digit");
    }
    let (value, tail) = parse_value(&text[name.len() + 1..])?;
    Ok((Some((bare.to_owned(), value)), tail))
}

fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// Parses the value at the start of `text`. Returns it with the text after its line.
fn parse_value(text: &str) -> Result<(String, &str), &'static str> {
    let start = text.trim_start_matches([' ', '\t']);
    let (value, tail) = match start.chars().next() {
        Some('\'') => {
            let (value, tail) = start[1..].split_once('\'').ok_or("the quote is not closed")?;
            (value.to_owned(), tail)
        }
        Some('"') => double_quoted(&start[1..])?,
        _ => {
            let line = start.split('\n').next().unwrap_or_default();
            let value = line.split_once(" #").map_or(line, |(value, _)| value);
            return reject_nul(value.trim().to_owned()).map(|value| (value, after_line(start)));
        }
    };
    let rest_of_line = tail.split('\n').next().unwrap_or_default().trim();
    if !rest_of_line.is_empty() && !rest_of_line.starts_with('#') {
        return Err("unexpected text after the closing quote");
    }
    reject_nul(value).map(|value| (value, after_line(tail)))
}

fn double_quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(c @ ('"' | '\\' | '$' | '\'')) => value.push(c),
                Some(c) => value.extend(['\\', c]),
                None => return Err("the quote is not closed"),
            },
            '\r' if text[at..].starts_with("\r\n") => {}
            c => value.push(c),
        }
    }
    Err("the quote is not closed")
}

fn reject_nul(value: String) -> Result<String, &'static str> {
    if value.contains('\0') { Err("the value contains a NUL byte") } else { Ok(value) }
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, tail)| tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = parse(text).unwrap_or_else(|bad| panic!("{text:?}: {bad:?}"));
        let found: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn valid_env_files_are_parsed() {
        check("", &[]);
        check("# only\n\n  # comments", &[]);
        check("A=1\nB = two words \n", &[("A", "1"), ("B", "two words")]);
        check("\u{feff}A=1\r\nB=2\r\n", &[("A", "1"), ("B", "2")]);
        check("export A=1 # why\nB=a#b", &[("A", "1"), ("B", "a#b")]);
        check("A='single $B \\n' # c\nB=\"a\\nb\\\"c\\$\"", &[("A", "single $B \\n"), ("B", "a\nb\"c$")]);
        check("A=\"two\nlines\"\nB=2", &[("A", "two\nlines"), ("B", "2")]);
        check("A=1\nA=2", &[("A", "2")]);
        check("A=\nB=${A}", &[("A", ""), ("B", "${A}")]);
        check("URL=postgres://u:p@h/db?x=y", &[("URL", "postgres://u:p@h/db?x=y")]);
    }

    #[test]
    fn more_names_than_the_limit_are_rejected() {
        let text: String = (0..=MAX_NAMES).map(|it| format!("N{it}=x\n")).collect();
        assert_eq!(parse(&text).map_err(|it| it.number), Err(MAX_NAMES + 1));
    }

    #[test]
    fn invalid_lines_are_reported_by_number() {
        for (text, number) in [
            ("A=1\njust words\n", 2),
            ("=1", 1),
            ("1A=1", 1),
            ("A B=1", 1),
            ("A='open\nB=1", 1),
            ("A=\"x\" y", 1),
            ("\n\nA=\0", 3),
            ("words\nA=1", 1),
        ] {
            assert_eq!(parse(text).map_err(|it| it.number), Err(number), "{text:?}");
        }
    }
}
