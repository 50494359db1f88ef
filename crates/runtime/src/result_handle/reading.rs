//! Reads parts of a document: lines, bytes, or the lines that match a pattern.

use super::preview::shorten;
use regex::RegexBuilder;
use std::fmt::Write;

/// Number of lines that are read if nothing else is asked for.
const DEFAULT_LINES: usize = 200;
/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 2048;
/// Size of a line above which only the surroundings of a match are shown, in bytes.
const MAX_LINE_BYTES: usize = 400;
/// Number of bytes shown before and after a match in a long line.
const SURROUNDINGS: usize = 120;

/// Part of a document to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadRange {
    /// These lines; the first line is 1.
    Lines(usize, usize),
    /// These bytes; the first byte is 0.
    Bytes(usize, usize),
}

impl ReadRange {
    /// Reads `"1-200"`. Both ends are included.
    pub(super) fn parse_ends(text: &str) -> Option<(usize, usize)> {
        let (first, last) = text.split_once('-')?;
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last).then_some((first, last))
    }
}

/// Returns the part of a document, at most `limit` bytes of it, and says what follows.
pub(super) fn read(text: &str, range: Option<ReadRange>, limit: usize) -> String {
    let (begin, end, what) = match range {
        Some(ReadRange::Bytes(first, last)) => {
            let begin = text.floor_char_boundary(first.min(text.len()));
            (begin, text.ceil_char_boundary(last.saturating_add(1).min(text.len())), "bytes")
        }
        Some(ReadRange::Lines(first, last)) => {
            (line_start(text, first.max(1)), line_start(text, last.saturating_add(1)), "lines")
        }
        None => (0, line_start(text, DEFAULT_LINES + 1), "lines"),
    };
    let fitting = text.floor_char_boundary((begin + limit).min(end.max(begin)));
    let mut out = text[begin..fitting].to_owned();
    if fitting < text.len() {
        let _ = match what {
            "lines" if fitting == end => {
                let next = text[..fitting].lines().count() + 1;
                write!(out, "\n[line {next} of {} follows]", text.lines().count())
            }
            _ => write!(out, "\n[byte {fitting} of {} follows]", text.len()),
        };
    }
    out
}

/// Returns the offset at which a line begins.
fn line_start(text: &str, line: usize) -> usize {
    match line {
        0 | 1 => 0,
        line => memchr::memchr_iter(b'\n', text.as_bytes()).nth(line - 2).map_or(text.len(), |at| at + 1),
    }
}

/// Returns the lines that match a pattern, with their numbers. Of long lines it shows the surroundings of the matches.
pub(super) fn grep(
    text: &str,
    pattern: &str,
    context: usize,
    max: usize,
    limit: usize,
) -> Result<String, String> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!("the pattern is longer than {MAX_PATTERN_BYTES} bytes"));
    }
    let pattern = RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).build();
    let pattern = pattern.map_err(|error| format!("the pattern is not valid: {error}"))?;
    let lines: Vec<&str> = text.lines().collect();
    let (mut out, mut shown, mut shown_until) = (String::new(), 0, 0);
    for (at, line) in lines.iter().enumerate() {
        if out.len() > limit || shown >= max {
            break;
        }
        if line.len() > MAX_LINE_BYTES {
            for found in pattern.find_iter(line).take(max - shown) {
                shown += 1;
                let _ = writeln!(out, "{}:{}: {}", at + 1, found.start(), surroundings(line, found.range()));
                if out.len() > limit {
                    break;
                }
            }
        } else if pattern.is_match(line) {
            shown += 1;
            let end = (at + context + 1).min(lines.len());
            let begin = at.saturating_sub(context).max(shown_until);
            for (number, line) in (begin..).zip(&lines[begin..end]) {
                let mark = if number == at { ':' } else { '-' };
                let _ = writeln!(out, "{}{mark} {}", number + 1, shorten(line, MAX_LINE_BYTES));
            }
            shown_until = end;
        }
    }
    if shown == 0 {
        return Ok("no line matches".to_owned());
    }
    if shown >= max {
        let _ = writeln!(out, "[the first {max} matches]");
    }
    Ok(shorten(&out, limit))
}

fn surroundings(line: &str, found: std::ops::Range<usize>) -> String {
    let begin = line.floor_char_boundary(found.start.saturating_sub(SURROUNDINGS));
    let end =
        line.ceil_char_boundary((found.end.min(found.start + MAX_LINE_BYTES) + SURROUNDINGS).min(line.len()));
    let before = if begin > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    format!("{before}{}{after}", &line[begin..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_bytes_are_read() {
        let text = "one\ntwo\nthree\nfür\n";
        for (range, limit, expected) in [
            (None, 1000, text),
            (Some(ReadRange::Lines(2, 3)), 1000, "two\nthree\n\n[line 4 of 4 follows]"),
            (Some(ReadRange::Lines(4, 9)), 1000, "für\n"),
            (Some(ReadRange::Lines(9, 9)), 1000, ""),
            (Some(ReadRange::Bytes(4, 6)), 1000, "two\n[byte 7 of 19 follows]"),
            (Some(ReadRange::Bytes(16, 99)), 1000, "ür\n"),
            (Some(ReadRange::Bytes(99, 100)), 1000, ""),
            (None, 5, "one\nt\n[byte 5 of 19 follows]"),
        ] {
            assert_eq!(read(text, range, limit), expected, "{range:?}");
        }
        assert_eq!(ReadRange::parse_ends("1-200"), Some((1, 200)));
        for wrong in ["", "1", "5-2", "a-b", "-1-2"] {
            assert_eq!(ReadRange::parse_ends(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn matching_lines_are_found_with_their_context() {
        let text = "a\nb1\nc\nb2\ne";
        assert_eq!(grep(text, "b.", 0, 50, 1000).as_deref(), Ok("2: b1\n4: b2\n"));
        assert_eq!(grep(text, "b.", 1, 50, 1000).as_deref(), Ok("1- a\n2: b1\n3- c\n4: b2\n5- e\n"));
        assert_eq!(grep(text, "b.", 0, 1, 1000).as_deref(), Ok("2: b1\n[the first 1 matches]\n"));
        assert_eq!(grep(text, "z", 0, 50, 1000).as_deref(), Ok("no line matches"));
        assert!(grep(text, "(", 0, 50, 1000).is_err());
        assert!(
            grep(text, &"(a{1000}){1000}".repeat(9), 0, 50, 1000).is_err(),
            "a pattern that is too large"
        );
    }

    #[test]
    fn long_lines_show_the_surroundings_of_a_match() {
        let line = format!("{}needle{}", "é".repeat(5000), "x".repeat(5000));
        let found = grep(&line, "needle", 3, 50, 10_000).expect("a match");
        assert!(found.starts_with("1:10000: …") && found.contains("needle"), "{found}");
        assert!(found.len() < 400, "{found}");
    }
}
