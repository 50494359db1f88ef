//! Tests `--help` of every command.

use super::{CliWorkspace, stdout};
use std::{fs, path::Path};

/// Returns the commands that a help text lists between its usage and its options.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|it| !it.starts_with("Usage: ")).skip(1);
    let listed = listed.take_while(|it| !it.ends_with("ptions:") && *it != "Arguments:");
    let names = listed.filter(|it| it.starts_with("  ") && !it.starts_with("   "));
    let names = names.filter_map(|it| it.split_whitespace().next());
    names.filter(|it| *it != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_has_two_examples_and_a_section_of_global_options() {
    let workspace = CliWorkspace::new();
    let all = commands(&stdout(&workspace.wharf(&["--help"])));
    assert!(all.len() > 15, "{all:?}");
    for command in &all {
        let help = stdout(&workspace.wharf(&[command, "--help"]));
        let mut pages = vec![(command.clone(), help.clone())];
        for inner in commands(&help) {
            let page = stdout(&workspace.wharf(&[command, &inner, "--help"]));
            pages.push((format!("{command} {inner}"), page));
        }
        for (command, help) in pages {
            let examples = help.split("\nExamples:\n").nth(1).unwrap_or_default();
            let count = examples.lines().filter(|it| it.starts_with(&format!("  wharf {command}"))).count();
            assert!(count >= 2, "`wharf {command} --help` has {count} examples:\n{help}");
            assert!(help.contains("\nGlobal options:\n"), "`wharf {command} --help`:\n{help}");
            assert_says_server(&format!("`wharf {command} --help`"), &help);
        }
    }
}

/// Checks that a text says server instead of source. `source` is a term of the API, and the name of a command and
/// of a page.
fn assert_says_server(location: &str, text: &str) {
    for line in text.lines().filter(|it| !it.contains("wharf sources")) {
        let rest = line.replace("sources.md", "");
        let mut words = rest.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
        assert!(words.all(|it| it != "source" && it != "sources"), "{location} says source: {line}");
    }
}

#[test]
fn docs_say_server_not_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = ["agent-yaml", "cli", "clients", "gateway", "replicas", "servers", "todo", "wharf-toml"];
    let docs = docs.iter().map(|it| format!("docs/{it}.md")).chain(["README.md".to_owned()]);
    for name in docs {
        let text = fs::read_to_string(root.join(&name)).expect("the document");
        assert_says_server(&name, &prose(&text));
    }
}

/// Removes code and link targets from a document.
fn prose(text: &str) -> String {
    let blocks = text.split("```").step_by(2).collect::<String>();
    let spans = blocks.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    spans.split("](").enumerate().fold(String::new(), |out, (number, part)| {
        out + if number == 0 { part } else { part.split_once(')').map_or("", |it| it.1) }
    })
}
