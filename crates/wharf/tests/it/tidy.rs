//! Checks repository rules over every file that is tracked or about to be. Each test lists the violations and how
//! to fix them. Rules that clippy checks are not repeated.

mod cycles;
mod edges;
mod length;
mod links;
mod names;
mod sources;
mod tokens;
mod tree;

use std::process::Command;

use tree::Tree;

/// Generated files that are checked in, and the arguments of the program that generate them.
const GENERATED: &[(&str, &[&str])] = &[("schema/agent.schema.json", &["schema"])];

/// Split, because this file is checked too.
const MACHINE_PATHS: [&str; 3] = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("../sh", "ared")];

#[test]
fn a_module_is_named_after_its_file() {
    let tree = Tree::read();
    let places = tree.paths().filter(|path| path.rsplit('/').next() == Some("mod.rs"));
    assert_none(places, "rename `foo/mod.rs` to `foo.rs`, beside the folder `foo`");
}

#[test]
fn every_source_file_has_a_module_comment() {
    let tree = Tree::read();
    let places = tree.sources().filter(|(_, text)| !text.starts_with("//!"));
    assert_none(
        places.map(|(path, _)| path),
        "open the file with a `//!` paragraph: what this is, what it owns, what it does not know",
    );
}

#[test]
fn lints_are_expected_and_never_allowed() {
    assert_none(
        lines(|line| {
            let line = line.trim_start();
            line.starts_with("#[allow(")
                || line.starts_with("#![allow(")
                || (line.starts_with("#[cfg_attr(") && line.contains("allow("))
        }),
        "fix what the lint found, or write `#[expect(.., reason = \"..\")]`",
    );
}

/// Words that open a comment which the reader has to decode.
const RIDDLES: [&str; 8] = ["What ", "Who ", "Whoever ", "Whose ", "Where ", "The same", "That ", "Lets "];

#[test]
fn doc_comments_begin_with_their_subject() {
    assert_none(
        lines(|line| {
            let line = line.trim_start();
            let comment = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
            comment.is_some_and(|it| RIDDLES.iter().any(|riddle| it.starts_with(riddle)))
        }),
        "begin with subject and verb, in the words of the field: `Tracks the status of one source.`",
    );
}

#[test]
fn comments_have_no_todo_markers() {
    let is_note = |word: &str| matches!(word, "TODO" | "FIXME" | "XXX");
    assert_none(
        lines(|line| {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            comment.split(|c: char| !c.is_alphanumeric()).any(is_note)
        }),
        "do it now, or open an issue and say in the comment why the code is as it is",
    );
}

#[test]
fn no_file_names_a_machine_path() {
    let tree = Tree::read();
    let places = tree.paths().flat_map(|path| {
        let text = tree.text(path);
        let found = text.lines().enumerate().filter(|(_, line)| names_a_machine(line));
        found.map(|(number, line)| format_line(path, number, line)).collect::<Vec<_>>()
    });
    assert_none(places, "use a path relative to the repository, or an invented one such as `/srv/data`");
}

#[test]
fn generated_files_are_up_to_date() {
    let tree = Tree::read();
    let stale = GENERATED.iter().filter(|(path, arguments)| {
        let output = Command::new(env!("CARGO_BIN_EXE_wharf")).args(*arguments).output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "`wharf {}` failed", arguments.join(" "));
        output.stdout != tree.bytes(path)
    });
    assert_none(stale.map(|(path, _)| path), "run `cargo xtask generate` and commit what it wrote");
}

/// Checks for a machine path. Only matches at the start of a path, because a name may also be a folder inside a
/// project.
fn names_a_machine(line: &str) -> bool {
    MACHINE_PATHS.iter().any(|name| {
        line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || "._-}".contains(c))
        })
    })
}

/// Returns the source lines for which `is_wrong` is true.
fn lines(is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let tree = Tree::read();
    let mut places = Vec::new();
    for (path, text) in tree.sources() {
        let wrong = text.lines().enumerate().filter(|(_, line)| is_wrong(line));
        places.extend(wrong.map(|(number, line)| format_line(path, number, line)));
    }
    places
}

fn format_line(path: &str, number: usize, line: &str) -> String {
    format!("{path}:{}: {}", number + 1, line.trim())
}

/// Fails with the list of violations, if there are any.
#[track_caller]
fn assert_none(places: impl IntoIterator<Item = impl ToString>, remedy: &str) {
    let places: Vec<String> = places.into_iter().map(|place| place.to_string()).collect();
    assert!(places.is_empty(), "\n  {}\n\nfix: {remedy}\n", places.join("\n  "));
}

#[test]
fn the_start_of_a_path_is_recognised() {
    let [home, work, beside] = MACHINE_PATHS;
    for line in [format!("cd {home}x"), format!("file://{work}"), beside.to_owned(), home.into()] {
        assert!(names_a_machine(&line), "{line}");
    }
    for line in [format!("~{}", "/work"), format!("https://example.com{work}"), format!("a{home}")] {
        assert!(!names_a_machine(&line), "{line}");
    }
}
