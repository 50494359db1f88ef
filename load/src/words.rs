//! Parses the command line: a role, options, and after `--` the command of another program.

use std::collections::HashMap;

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Words {
    bare: Vec<String>,
    options: HashMap<String, String>,
    command: Vec<String>,
}

impl Words {
    pub(crate) fn new(words: impl IntoIterator<Item = String>) -> Words {
        let (mut bare, mut options) = (Vec::new(), HashMap::new());
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                Some("") => break,
                Some(name) => {
                    let value = words.next_if(|next| !next.starts_with("--"));
                    options.insert(name.to_owned(), value.unwrap_or_default());
                }
                None => bare.push(word),
            }
        }
        Words { bare, options, command: words.collect() }
    }

    pub(crate) fn role(&self) -> &str {
        self.bare.first().map_or("", String::as_str)
    }

    /// Returns the word after the role.
    pub(crate) fn manner(&self) -> &str {
        self.bare.get(1).map_or("", String::as_str)
    }

    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str, otherwise: usize) -> usize {
        self.text(name).and_then(|it| it.parse().ok()).unwrap_or(otherwise)
    }

    pub(crate) fn seconds(&self, otherwise: f64) -> f64 {
        let seconds = self.text("seconds").and_then(|it| it.parse().ok());
        seconds.filter(|it: &f64| it.is_finite() && *it > 0.0).unwrap_or(otherwise)
    }

    pub(crate) fn command(&self) -> &[String] {
        &self.command
    }
}
