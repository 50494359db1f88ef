//! Checks the length of files and functions. The longest function of a codebase tends to be its main path, which
//! everyone has to read. Exceptions are listed with their length and can only shrink.

use std::collections::BTreeMap;

use super::assert_none;
use super::tree::Tree;

const FILE_LIMIT: usize = 500;
const FUNCTION_LIMIT: usize = 70;

/// `("crates/x/src/y.rs", 612)`
const LONG_FILES: &[(&str, usize)] = &[];
/// `("crates/x/src/y.rs: lower", 91)`
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

#[test]
fn files_are_short() {
    let tree = Tree::read();
    let lengths = tree.sources().map(|(path, text)| (path.to_owned(), text.lines().count()));
    assert_none(
        ratchet(&lengths.collect(), FILE_LIMIT, LONG_FILES),
        "a file is one noun: find the second one in it and give it a file of its own",
    );
}

#[test]
fn functions_are_short() {
    let tree = Tree::read();
    let mut lengths = BTreeMap::new();
    for (path, text) in tree.sources().filter(|(path, _)| path.contains("/src/")) {
        for (name, length) in functions(&text) {
            let longest = lengths.entry(format!("{path}: {name}")).or_default();
            *longest = length.max(*longest);
        }
    }
    assert_none(
        ratchet(&lengths, FUNCTION_LIMIT, LONG_FUNCTIONS),
        "give its steps names and let it read as a list of them",
    );
}

/// Returns everything that is too long without an exception, and outdated exceptions.
fn ratchet(lengths: &BTreeMap<String, usize>, limit: usize, exceptions: &[(&str, usize)]) -> Vec<String> {
    let excepted = |name: &str| exceptions.iter().find(|(other, _)| *other == name);
    let too_long = lengths.iter().filter_map(|(name, length)| match excepted(name) {
        None if *length > limit => Some(format!("{name}: {length} lines, over {limit}")),
        Some((_, was)) if length > was => Some(format!("{name}: {length} lines, grown from {was}")),
        _ => None,
    });
    let untrue = exceptions.iter().filter_map(|(name, was)| {
        let length = lengths.get(*name).copied().unwrap_or_default();
        match length {
            _ if length <= limit => Some(format!("{name}: remove its exception")),
            _ if length < *was => Some(format!("{name}: lower its exception from {was} to {length}")),
            _ => None,
        }
    });
    too_long.chain(untrue).collect()
}

/// Returns the name and length of every function before the unit tests. The text is formatted by rustfmt, so a
/// function ends at the first closing brace with the same indentation as its beginning.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        if line.ends_with([';', '}']) {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &str| {
            let rest = line.strip_prefix(indent).unwrap_or_default();
            rest.starts_with('}') || (rest.starts_with(')') && rest.ends_with(';'))
        };
        let length = lines[at + 1..].iter().position(|line| is_end(line)).map_or(0, |end| end + 2);
        found.push((name, length));
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line
        .trim_start()
        .split_once("fn ")
        .filter(|(_, after)| after.starts_with(|c: char| c.is_alphabetic() || c == '_'))?;
    let is_qualifier = |word: &str| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word)
    };
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    before.split_whitespace().all(is_qualifier).then_some(&after[..end])
}

#[test]
fn functions_are_found_with_their_length() {
    let text = "\
fn one() {}
pub(crate) async fn two(
    a: u8,
) -> u8 {
    let f = |x| {
        x
    };
    f(a)
}
trait T {
    fn three(
        &self,
    );
    fn four(&self) -> u8 {
        fn five() {
        }
        4
    }
}
// a comment about a fn that
let fn_six = 6;

#[cfg(test)]
mod tests {
    fn seven() {
    }
}
";
    assert_eq!(functions(text), [("two", 8), ("three", 3), ("four", 5), ("five", 2)]);
}

#[test]
fn the_ratchet_only_tightens() {
    let check = |length: usize, exceptions: &[(&str, usize)], expected: &[&str]| {
        let lengths = BTreeMap::from([("f".to_owned(), length)]);
        assert_eq!(ratchet(&lengths, 70, exceptions), expected, "{length} {exceptions:?}");
    };
    check(70, &[], &[]);
    check(71, &[], &["f: 71 lines, over 70"]);
    check(90, &[("f", 90)], &[]);
    check(91, &[("f", 90)], &["f: 91 lines, grown from 90"]);
    check(80, &[("f", 90)], &["f: lower its exception from 90 to 80"]);
    check(70, &[("f", 90)], &["f: remove its exception"]);
    check(70, &[("gone", 90)], &["gone: remove its exception"]);
}
