//! Runs the examples of documentation pages and compares the output with the page.
//!
//! The first `yaml` block of a page is agent.yaml. A block whose opening line has a second word is the file of that name.
//! Each `console` block has commands (`$ …`) and their output, stdout and stderr together. All blocks of a page run in
//! order, in one folder, with nothing but `wharf`, `sh` and the standard tools on the PATH. `UPDATE=1` rewrites the output
//! in the page; review the diff.

use crate::servers::workspace::path_with;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

#[test]
fn lock_page_shows_what_happens() {
    check("lock.md");
}

#[test]
fn record_page_shows_what_happens() {
    check("record.md");
}

#[test]
fn faults_page_shows_what_happens() {
    check("faults.md");
}

#[test]
fn test_page_works_in_an_empty_folder() {
    check("test.md");
}

#[test]
fn why_page_shows_what_happens() {
    check("why.md");
}

#[test]
fn lint_page_shows_what_happens() {
    check("lint.md");
}

#[test]
fn overrides_page_shows_what_happens() {
    check("overrides.md");
}

/// Runs all examples of a page.
#[expect(clippy::disallowed_methods, reason = "the UPDATE variable decides whether to write")]
fn check(page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(&path).expect("the page");
    let seen = run_page(&text);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &seen).expect("the page can be written");
    }
    let text = fs::read_to_string(&path).expect("the page");
    assert!(text == seen, "{page} says:\n{text}\nbut this was seen:\n{seen}");
}

/// Runs a page. Returns it with the output that was seen.
fn run_page(text: &str) -> String {
    let folder = TempDir::new().expect("a folder");
    let mut seen = String::new();
    let mut lines = text.lines();
    let mut has_agent_file = false;
    while let Some(line) = lines.next() {
        seen.push_str(&format!("{line}\n"));
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|it| *it != "```").collect();
        let (kind, name) = info.split_once(' ').unwrap_or((info, ""));
        let name = match (kind, name) {
            ("yaml", "") if !has_agent_file => "agent.yaml",
            (_, name) => name,
        };
        has_agent_file |= name == "agent.yaml";
        if !name.is_empty() {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, block.join("\n") + "\n").expect("a file");
        }
        match kind {
            "console" => {
                let commands = block.iter().filter_map(|it| it.strip_prefix("$ "));
                commands.for_each(|it| seen.push_str(&format!("$ {it}\n{}", run(it, folder.path()))));
            }
            _ => block.iter().for_each(|it| seen.push_str(&format!("{it}\n"))),
        }
        seen.push_str("```\n");
    }
    seen
}

fn run(command: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_wharf")).parent().map(PathBuf::from);
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(folder)
        .env_clear()
        .env("PATH", path_with(program))
        .env("HOME", folder)
        .env("WHARF_HOME", folder.join(".wharf"))
        .output()
        .expect("sh runs");
    let text = with_fixed_times(&String::from_utf8_lossy(&output.stdout));
    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
}

/// Replaces every time, so that the output is the same on each run.
fn with_fixed_times(text: &str) -> String {
    let is_time =
        |it: &str| it.starts_with("20") && it.get(10..11) == Some("T") && it.trim_end().ends_with('Z');
    let words = text.split_inclusive([' ', '\n']);
    let fixed = words.map(|it| match is_time(it) {
        true => format!("2026-10-01T09:00:00Z{}", &it[it.trim_end().len()..]),
        false => it.to_owned(),
    });
    fixed.collect()
}
