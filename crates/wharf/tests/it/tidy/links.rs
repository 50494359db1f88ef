//! Checks the links between the documents: each target file and heading exists. External links are not followed.

use std::path::Path;

use super::assert_none;
use super::tree::Tree;

#[test]
fn links_between_documents_resolve() {
    let tree = Tree::read();
    let documents = tree
        .paths()
        .filter(|path| path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/")));
    let mut places = Vec::new();
    for document in documents {
        let text = tree.text(document);
        let broken = links(&text).into_iter().filter(|(_, to)| !resolves(tree.root(), document, to));
        places.extend(broken.map(|(line, to)| format!("{document}:{line}: {to}")));
    }
    assert_none(places, "name a file (relative to the document) and a heading that exist");
}

fn resolves(root: &Path, document: &str, link: &str) -> bool {
    if link.contains("://") || link.starts_with("mailto:") {
        return true;
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let document = root.join(document);
    let target = match file {
        "" => document,
        file => document.parent().unwrap_or(root).join(file),
    };
    if heading.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return target.exists();
    }
    let text = std::fs::read_to_string(target).unwrap_or_default();
    prose(&text).iter().any(|(_, line)| line.starts_with('#') && anchor(line) == heading)
}

/// Returns the targets of inline links and reference definitions, with line numbers.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every second piece between backticks is code.
        let spoken: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = spoken.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        found.extend(inline.map(|to| (number, to.to_owned())));
        if let Some((_, to)) = spoken.split_once("]: ").filter(|_| spoken.starts_with('[')) {
            found.push((number, to.trim().to_owned()));
        }
    }
    found
}

/// Returns the numbered lines outside fenced code.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// Converts a heading to its anchor, as code hosting sites do.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_are_found() {
    let text = "\
A [map](ARCHITECTURE.md#the-map), a [site](https://example.com \"title\") and `[code](nowhere)`.
```
[fenced](nowhere)
```
![picture](docs/p.png) [ref][r]
[r]: CHANGELOG.md
";
    let found = links(text);
    let expected =
        [(1, "ARCHITECTURE.md#the-map"), (1, "https://example.com"), (5, "docs/p.png"), (6, "CHANGELOG.md")];
    assert_eq!(found, expected.map(|(line, to)| (line, to.to_owned())));
    assert_eq!(anchor("## The `wharf.toml`, in short"), "the-wharftoml-in-short");
}
