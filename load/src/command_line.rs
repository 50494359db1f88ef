//! Parses the command line: a role, options, and after `--` the command of another program.

use std::collections::HashMap;

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct CommandLine {
    positional: Vec<String>,
    options: HashMap<String, String>,
    command: Vec<String>,
}

impl CommandLine {
    pub(crate) fn new(command_line: impl IntoIterator<Item = String>) -> CommandLine {
        let (mut positional, mut options) = (Vec::new(), HashMap::new());
        let mut command_line = command_line.into_iter().peekable();
        while let Some(word) = command_line.next() {
            match word.strip_prefix("--") {
                Some("") => break,
                Some(name) => {
                    let value = command_line.next_if(|next| !next.starts_with("--"));
                    options.insert(name.to_owned(), value.unwrap_or_default());
                }
                None => positional.push(word),
            }
        }
        CommandLine { positional, options, command: command_line.collect() }
    }

    pub(crate) fn role(&self) -> &str {
        self.positional.first().map_or("", String::as_str)
    }

    /// Returns the word after the role.
    pub(crate) fn mode(&self) -> &str {
        self.positional.get(1).map_or("", String::as_str)
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str, default: usize) -> usize {
        self.text(name).and_then(|it| it.parse().ok()).unwrap_or(default)
    }

    pub(crate) fn seconds(&self, default: f64) -> f64 {
        let seconds = self.text("seconds").and_then(|it| it.parse().ok());
        seconds.filter(|it: &f64| it.is_finite() && *it > 0.0).unwrap_or(default)
    }

    pub(crate) fn command(&self) -> &[String] {
        &self.command
    }
}
