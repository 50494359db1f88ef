//! `--help` of every command.

use super::{Place, stdout};

/// The commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|it| *it != "Commands:").skip(1).take_while(|it| !it.is_empty());
    let names = listed.filter(|it| !it.starts_with("   ")).filter_map(|it| it.split_whitespace().next());
    names.filter(|it| *it != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_has_two_examples_and_a_section_of_global_options() {
    let place = Place::new();
    let all = commands(&stdout(&place.wharf(&["--help"])));
    assert!(all.len() > 15, "{all:?}");
    for command in &all {
        let help = stdout(&place.wharf(&[command, "--help"]));
        let mut pages = vec![(command.clone(), help.clone())];
        for inner in commands(&help) {
            let page = stdout(&place.wharf(&[command, &inner, "--help"]));
            pages.push((format!("{command} {inner}"), page));
        }
        for (command, help) in pages {
            let examples = help.split("\nExamples:\n").nth(1).unwrap_or_default();
            let count = examples.lines().filter(|it| it.starts_with(&format!("  wharf {command}"))).count();
            assert!(count >= 2, "`wharf {command} --help` has {count} examples:\n{help}");
            assert!(help.contains("\nGlobal options:\n"), "`wharf {command} --help`:\n{help}");
        }
    }
}
