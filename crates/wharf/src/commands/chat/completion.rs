//! Completes commands, prompts and resources while the user types.

use super::command::COMMANDS;
use rustyline::{
    Context, Helper, completion::Completer, highlight::Highlighter, hint::Hinter, validate::Validator,
};
use wharf_runtime::Catalog;

/// Words that can be completed.
#[derive(Clone, Debug, Default)]
pub(super) struct Completion {
    /// `/SOURCE:NAME` of each prompt, with the names of its arguments.
    prompts: Vec<(String, Vec<String>)>,
    /// `@URI` of each resource.
    resources: Vec<String>,
}

impl Completion {
    /// Collects the prompts and resources of a catalog.
    pub(super) fn of(catalog: &Catalog) -> Completion {
        let prompts = catalog.prompts.iter().map(|it| {
            let arguments = it.prompt.arguments.iter().map(|it| it.name.clone());
            (format!("/{}:{}", it.source, it.prompt.name), arguments.collect())
        });
        let resources = catalog.resources.iter().map(|it| format!("@{}", it.item.uri));
        Completion { prompts: prompts.collect(), resources: resources.collect() }
    }

    /// Returns the words that fit the one before the cursor, and where that one begins.
    fn candidates(&self, before: &str) -> (usize, Vec<String>) {
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &before[start..];
        let fits = |it: &String| it.starts_with(word) && !it.contains(char::is_control);
        let commands = COMMANDS.iter().map(|(name, _)| format!("/{name}"));
        let words: Vec<String> = match word.chars().next() {
            Some('@') => self.resources.iter().filter(|it| fits(it)).cloned().collect(),
            Some('/') if start == 0 => {
                let prompts = self.prompts.iter().map(|(name, _)| name.clone());
                commands.chain(prompts).filter(fits).collect()
            }
            _ => {
                let prompt = before.split_whitespace().next().filter(|_| start > 0);
                let arguments = self.prompts.iter().find(|(name, _)| Some(name.as_str()) == prompt);
                let arguments = arguments.into_iter().flat_map(|(_, names)| names);
                arguments.map(|it| format!("{it}=")).filter(fits).collect()
            }
        };
        (start, words)
    }
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.candidates(line.get(..at).unwrap_or_default()))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_the_cursor_is_completed() {
        let completion = Completion {
            prompts: vec![("/todo:plan_my_day".into(), vec!["date".into()])],
            resources: vec!["@todo://1".into(), "@todo://2".into()],
        };
        for (before, start, expected) in [
            ("/he", 0, vec!["/help"]),
            ("/to", 0, vec!["/tools", "/todo:plan_my_day"]),
            ("/todo:plan_my_day d", 18, vec!["date="]),
            ("what is @todo", 8, vec!["@todo://1", "@todo://2"]),
            ("what is", 5, vec![]),
            ("a /he", 2, vec![]),
        ] {
            let (at, words) = completion.candidates(before);
            assert_eq!((at, words), (start, expected.into_iter().map(str::to_owned).collect()), "{before}");
        }
    }
}
