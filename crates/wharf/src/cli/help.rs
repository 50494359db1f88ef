//! The help of the program itself: its commands in groups, because one list of all of them is too long to read.

use clap::{Command, builder::StyledStr};
use std::fmt::Write as _;

/// Headings and their commands. A command that is in no group is listed at the end.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Set up", &["init", "add", "connect", "check", "explain", "doctor", "login"]),
    ("Use tools", &["tools", "call", "tasks", "prompts", "prompt", "resources", "read"]),
    ("Talk to the agent", &["run", "chat", "conversations"]),
    ("Serve", &["serve", "console", "sources", "stdio", "todo"]),
    ("Review and test", &["lock", "lint", "why", "mock", "replay", "test"]),
];

const OTHERS: &str = "Other";

/// Returns the template of the help text for a program with these commands.
pub(super) fn template(program: &Command) -> StyledStr {
    let header = program.get_styles().get_header();
    let name = program.get_styles().get_literal();
    let width = program.get_subcommands().map(|it| it.get_name().len()).max().unwrap_or_default();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, commands) in groups(program) {
        let _ = write!(text, "\n{header}{heading}:{header:#}\n");
        for command in commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name}{:width$}{name:#}  {about}", command.get_name());
        }
    }
    let _ =
        write!(text, "\n{header}Options:{header:#}\n{{options}}\n\n`wharf COMMAND --help` shows examples.");
    StyledStr::from(text)
}

/// Sorts the visible commands into groups.
fn groups(program: &Command) -> Vec<(&'static str, Vec<&Command>)> {
    let visible = || program.get_subcommands().filter(|it| !it.is_hide_set());
    let named = |names: &[&str]| {
        let found = |name: &&str| visible().find(|it| it.get_name() == *name);
        names.iter().filter_map(found).collect::<Vec<_>>()
    };
    let mut groups: Vec<_> = GROUPS.iter().map(|(heading, names)| (*heading, named(names))).collect();
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    groups.push((OTHERS, visible().filter(|it| !is_grouped(it.get_name())).collect()));
    groups
}

#[cfg(test)]
mod tests {
    use super::{OTHERS, groups};
    use crate::cli::Cli;
    use clap::CommandFactory;

    /// A new command belongs in a group.
    #[test]
    fn only_commands_for_editors_and_shells_are_without_a_group() {
        let program = Cli::command();
        let others = groups(&program).pop().expect("the last group");
        let names: Vec<_> = others.1.iter().map(|it| it.get_name()).collect();
        assert_eq!((others.0, names), (OTHERS, vec!["schema", "completions"]));
    }

    #[test]
    fn every_command_is_listed_once() {
        let program = Cli::command();
        let mut listed: Vec<_> =
            groups(&program).into_iter().flat_map(|it| it.1).map(|it| it.get_name()).collect();
        let mut all: Vec<_> = program.get_subcommands().map(|it| it.get_name()).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
    }
}
