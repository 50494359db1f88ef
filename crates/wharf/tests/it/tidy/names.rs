//! Checks names: a type name is unique in its crate, and identifiers use the words of the field.

use std::collections::{BTreeMap, BTreeSet};

use super::assert_none;
use super::sources::{SourceFile, crates};
use super::tokens::tokens;
use super::tree::Tree;

/// Words of an earlier vocabulary that a reader would have to look up.
const PRIVATE_WORDS: [&str; 9] =
    ["berth", "moor", "dock", "yard", "council", "errand", "ledger", "told", "whoever"];

#[test]
fn type_names_are_unique_within_a_crate() {
    let mut places = Vec::new();
    for one in crates(&Tree::read()) {
        let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for file in &one.files {
            for name in types(file) {
                modules.entry(name).or_default().insert(&file.path);
            }
        }
        let repeated = modules.into_iter().filter(|(_, paths)| paths.len() > 1);
        places
            .extend(repeated.map(|(name, paths)| {
                format!("{name}: {}", paths.into_iter().collect::<Vec<_>>().join(", "))
            }));
    }
    assert_none(places, "say in the name what the type is of: `SpoolEntry`, not a second `Entry`");
}

#[test]
fn identifiers_use_no_private_words() {
    let mut places = Vec::new();
    for (path, text) in Tree::read().sources() {
        let wrong = tokens(&text).into_iter().filter(|it| it.is_word() && has_private_word(it.text));
        places.extend(wrong.map(|it| format!("{path}:{}: {}", it.line, it.text)));
    }
    assert_none(places, "use the word of MCP, HTTP or Rust: session, request, client, timeout, store");
}

/// Returns the names of the types that a file defines outside of functions, traits and impls. Associated types are
/// therefore left out.
fn types(file: &SourceFile) -> Vec<&str> {
    let tokens = file.tokens();
    let text_at = |at: usize| tokens.get(at).map_or("", |it| it.text);
    let (mut blocks, mut found) = (Vec::new(), Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" => blocks.push(at > 1 && text_at(at - 2) == "mod"),
            "}" => drop(blocks.pop()),
            "struct" | "enum" | "union" | "trait" | "type" if blocks.iter().all(|is_module| *is_module) => {
                found.extend(tokens.get(at + 1).filter(|it| it.is_word()).map(|it| it.text));
            }
            _ => {}
        }
    }
    found
}

/// Checks the parts of a name in `snake_case` or `CamelCase`.
fn has_private_word(name: &str) -> bool {
    parts(name).iter().any(|it| PRIVATE_WORDS.contains(&it.as_str()))
}

fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && !before.is_uppercase() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts.into_iter().filter(|it| !it.is_empty()).collect()
}

#[test]
fn names_are_split_into_words() {
    for (name, expected) in [
        ("told_you", "told you"),
        ("ToldYou", "told you"),
        ("TOLD_YOU", "told you"),
        ("docker", "docker"),
        ("HTTPServer", "httpserver"),
        ("_x", "x"),
    ] {
        assert_eq!(parts(name).join(" "), expected);
    }
    assert!(has_private_word("was_told") && has_private_word("DockTool"));
    assert!(!has_private_word("Docker"));
}

#[test]
fn types_of_modules_are_found() {
    let text = "struct A; mod m { enum B {} } trait C { type D; } impl C for A { type D = u8; } \
                fn f() { struct E; } type F = u8; #[cfg(test)] struct G;";
    let file = SourceFile { path: String::new(), module: Vec::new(), text: text.to_owned() };
    assert_eq!(types(&file), ["A", "B", "C", "F"]);
}
