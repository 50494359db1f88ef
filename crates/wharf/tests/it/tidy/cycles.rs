//! Checks that the top-level modules of a crate form no cycle, so that a reader can start at the bottom.
//!
//! A module uses another if it names a path into it: `crate::other`, a `super::` path that reaches the crate root, or
//! an item of `other` that the root re-exports.

use std::collections::{BTreeMap, BTreeSet};

use super::assert_none;
use super::sources::{CrateSources, ROOT, SourceFile, crates};
use super::tokens::Token;
use super::tree::Tree;

#[test]
fn modules_have_no_cycles() {
    let tree = Tree::read();
    let places = crates(&tree).into_iter().flat_map(|one| {
        let edges = cyclic(edges(&one));
        edges.into_iter().map(move |((from, to), place)| format!("{}: {from} -> {to} at {place}", one.name))
    });
    assert_none(
        places,
        "each line is a step of a cycle. Move the item to the module that owns it, pass a value instead of a type, or \
         give both a small module below them",
    );
}

/// A module, a module that it uses, and the first place where it does.
type Edges = BTreeMap<(String, String), String>;

/// Keeps the edges that are part of a cycle: those whose end leads back to their start.
fn cyclic(edges: Edges) -> Edges {
    let leads_to = |start: &str, goal: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(module) = open.pop() {
            if seen.insert(module) {
                let next = edges.keys().filter(|(from, _)| from == module);
                open.extend(next.map(|(_, to)| to.as_str()));
            }
        }
        seen.contains(goal)
    };
    let is_cyclic = |(from, to): &(String, String)| leads_to(to, from);
    let kept: Vec<_> = edges.keys().filter(|it| is_cyclic(it)).cloned().collect();
    edges.into_iter().filter(|(edge, _)| kept.contains(edge)).collect()
}

fn edges(one: &CrateSources) -> Edges {
    let modules: BTreeSet<&str> = one.files.iter().map(SourceFile::top_module).collect();
    let exports = exports(one, &modules);
    let mut edges = Edges::new();
    for file in &one.files {
        for (path, line) in paths(file, &modules) {
            let first = path[0].as_str();
            let to = match exports.get(first) {
                _ if modules.contains(first) => first,
                Some(Some(module)) => module,
                // The root re-exports it from another crate.
                Some(None) => continue,
                None => ROOT,
            };
            let from = file.top_module();
            if from != to {
                let place = || format!("{}:{line}", file.path);
                edges.entry((from.to_owned(), to.to_owned())).or_insert_with(place);
            }
        }
    }
    edges
}

/// Returns the names that the root imports or re-exports, each with the module that it comes from, or `None` for
/// another crate.
fn exports(one: &CrateSources, modules: &BTreeSet<&str>) -> BTreeMap<String, Option<String>> {
    let mut exports = BTreeMap::new();
    let Some(root) = one.files.iter().find(|it| it.module.is_empty()) else { return exports };
    for leaf in uses(&root.tokens()) {
        let path: Vec<&str> =
            leaf.path.iter().copied().skip_while(|it| ["crate", "self"].contains(it)).collect();
        let module = path.first().filter(|it| modules.contains(*it)).map(|it| (*it).to_owned());
        if leaf.name != "*" {
            exports.insert(leaf.name.to_owned(), module);
            continue;
        }
        let glob = one
            .files
            .iter()
            .find(|it| it.module.iter().map(String::as_str).eq(path[..path.len() - 1].iter().copied()));
        for name in glob.map(|it| item_names(&it.tokens())).unwrap_or_default() {
            exports.insert(name, module.clone());
        }
    }
    exports
}

/// Returns the names that a module defines or imports.
fn item_names(tokens: &[Token<'_>]) -> Vec<String> {
    const ITEMS: [&str; 8] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static"];
    let defined = tokens.windows(2).filter(|it| ITEMS.contains(&it[0].text)).map(|it| it[1].text);
    let imported = uses(tokens).into_iter().map(|it| it.name);
    defined.chain(imported).map(str::to_owned).collect()
}

/// Returns the paths of a file that start at the crate root, without `crate`, and their lines.
fn paths(file: &SourceFile, modules: &BTreeSet<&str>) -> Vec<(Vec<String>, usize)> {
    let tokens = file.tokens();
    let is_root = file.module.is_empty();
    let (mut found, mut at, mut in_use) = (Vec::new(), 0, false);
    let mut blocks: Vec<Option<String>> = Vec::new();
    while let Some(token) = tokens.get(at) {
        let text_at = |at: usize| tokens.get(at).map_or("", |it| it.text);
        match token.text {
            "{" => {
                let is_module = at > 1 && text_at(at - 2) == "mod";
                blocks.push(is_module.then(|| text_at(at - 1).to_owned()));
            }
            "}" => drop(blocks.pop()),
            "use" => in_use = true,
            ";" => in_use = false,
            _ => {}
        }
        let is_start = text_at(at + 1) == "::" && (at == 0 || text_at(at - 1) != "::");
        let is_relative = ["crate", "self", "super"].contains(&token.text);
        // The root names its modules directly. Its imports are re-exports and count where they are used.
        let is_of_root = is_root && !in_use && modules.contains(token.text);
        if is_start && (is_relative && !(is_root && in_use) || is_of_root) {
            let inline = blocks.iter().flatten().cloned();
            let here: Vec<String> = file.module.iter().cloned().chain(inline).collect();
            let absolute = use_tree(&tokens, at).0.into_iter().map(|leaf| absolute(&here, &leaf.path));
            found.extend(absolute.filter(|it| !it.is_empty()).map(|it| (it, token.line)));
        }
        at += 1;
    }
    found
}

/// Resolves `crate`, `self` and `super` at the start of a path.
fn absolute(here: &[String], path: &[&str]) -> Vec<String> {
    let mut base = here.to_vec();
    let mut rest = path;
    while let [first, others @ ..] = rest {
        match *first {
            "crate" => base.clear(),
            "self" => {}
            "super" => drop(base.pop()),
            _ => break,
        }
        rest = others;
    }
    base.extend(rest.iter().filter(|it| **it != "*").map(|it| (*it).to_owned()));
    base
}

/// One path of a `use` tree, and the name under which it is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Leaf<'a> {
    path: Vec<&'a str>,
    name: &'a str,
}

/// Returns the leaves of every `use` item.
fn uses<'a>(tokens: &[Token<'a>]) -> Vec<Leaf<'a>> {
    let starts = tokens.iter().enumerate().filter(|(_, it)| it.text == "use").map(|(at, _)| at + 1);
    starts.flat_map(|at| use_tree(tokens, at).0).collect()
}

/// Reads a path or a `use` tree. Returns its leaves and the position behind it.
fn use_tree<'a>(tokens: &[Token<'a>], mut at: usize) -> (Vec<Leaf<'a>>, usize) {
    let text_at = |at: usize| tokens.get(at).map_or("", |it| it.text);
    let mut path = Vec::new();
    loop {
        match tokens.get(at) {
            Some(it) if it.text == "{" => {
                let mut leaves = Vec::new();
                at += 1;
                while !["}", ""].contains(&text_at(at)) {
                    let (inner, end) = use_tree(tokens, at);
                    leaves.extend(
                        inner.into_iter().map(|it| Leaf { path: [&path[..], &it.path].concat(), ..it }),
                    );
                    at = end.max(at + usize::from(end == at));
                    at += usize::from(text_at(at) == ",");
                }
                return (leaves, at + 1);
            }
            Some(it) if it.is_word() || it.text == "*" => path.push(it.text),
            _ => break,
        }
        at += 1;
        if text_at(at) != "::" {
            break;
        }
        at += 1;
    }
    let mut name = path.iter().rev().find(|it| **it != "self").copied().unwrap_or_default();
    if text_at(at) == "as" {
        name = text_at(at + 1);
        at += 2;
    }
    (vec![Leaf { path, name }], at)
}

fn one(files: &[(&str, &str)]) -> CrateSources {
    let file = |(module, text): &(&str, &str)| SourceFile {
        path: format!("{module}.rs"),
        module: module.split("::").filter(|it| !it.is_empty()).map(str::to_owned).collect(),
        text: (*text).to_owned(),
    };
    CrateSources { name: "x".to_owned(), files: files.iter().map(file).collect() }
}

#[test]
fn every_form_of_a_path_is_an_edge() {
    let root =
        "mod a; mod b; mod c; pub use a::{X, Z as Y}; pub use b::*; pub use other::Q; pub fn f() { a::g() }";
    let b = ("b", "pub struct B; fn x(_: crate::X) {} // crate::c");
    for (code, expected) in [
        ("use crate::{a::{self, X}, b::B};", "a b"),
        ("fn f() { crate::a::g::<u8>() }", "a"),
        ("use super::{super::a, d};", "a"),
        ("use crate::Y;", "a"),
        ("use crate::B;", "b"),
        ("use crate::Q;", ""),
        ("use crate::f;", "crate root"),
        ("use crate::c::e; use self::e; use super::d; use a::c;", ""),
        ("mod m { use super::super::super::a; use super::a; }", "a"),
        ("#[cfg(test)] mod t { use crate::a; }", ""),
        ("const S: &str = \"crate::a\";", ""),
    ] {
        let all = edges(&one(&[("", root), ("a", "pub struct X; pub struct Z;"), b, ("c::d", code)]));
        let found: Vec<&str> =
            all.keys().filter(|(from, _)| from == "c").map(|(_, to)| to.as_str()).collect();
        assert_eq!(found.join(" "), expected, "{code}");
    }
}

#[test]
fn only_edges_of_a_cycle_are_kept() {
    let all = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")];
    let edge = |(from, to): (&str, &str)| ((from.to_owned(), to.to_owned()), String::new());
    let kept: Vec<String> =
        cyclic(all.into_iter().map(edge).collect()).into_keys().map(|(from, to)| from + &to).collect();
    assert_eq!(kept, ["ab", "bc", "ca"]);
}
