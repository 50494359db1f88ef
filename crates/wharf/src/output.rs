//! Writes data to stdout and messages to stderr. A closed pipe is not an error; a full disk is.

mod document;

use crate::{cli::Colour, command_error::CommandError, exit::Exit, pretty_json::pretty};
pub(crate) use document::Document;
use serde_json::Value;
use std::{
    io::{self, IsTerminal, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};
use wharf_config::{Diagnostics, Lines};
use wharf_mcp::Raw;

/// Labels at the start of lines, and their ANSI colours.
const COLOURS: [(&str, &str); 7] = [
    ("error:", "1;31"),
    ("FAIL ", "1;31"),
    ("warning:", "1;33"),
    ("warn ", "1;33"),
    ("help:", "1;36"),
    ("note:", "1;36"),
    ("ok ", "32"),
];

/// Diagnostic code of deprecated entries.
const DEPRECATED: &str = "V-15";

/// The first error while writing to stdout.
static NOT_WRITTEN: OnceLock<String> = OnceLock::new();

/// Whether the `--json` document has been printed. A command prints only one.
static IS_PRINTED: AtomicBool = AtomicBool::new(false);

/// The output format of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) colour: Colour,
    pub(crate) document: Document,
}

impl Output {
    /// Writes text to stdout.
    pub(crate) fn data(self, text: &str) {
        match write_all(io::stdout().lock(), text) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                // Keep the first error.
                let _ = NOT_WRITTEN.set(error.to_string());
            }
            // A broken pipe (`wharf schema | head`) means that the reader has seen enough.
            Ok(()) | Err(_) => {}
        }
    }

    /// Writes lines that begin with a state (`ok`, `warn` or `FAIL`) to stdout, in colour if wanted.
    pub(crate) fn states(self, text: &str) {
        self.data(&painted(text, self.colour.wanted(io::stdout().is_terminal())));
    }

    /// Writes one JSON document to stdout.
    pub(crate) fn json(self, value: &Value) {
        IS_PRINTED.store(true, Ordering::Relaxed);
        self.data(&format!("{value:#}\n"));
    }

    /// Writes one JSON document to stdout. Keeps its strings and numbers exactly as written.
    pub(crate) fn raw_json(self, raw: &Raw) {
        IS_PRINTED.store(true, Ordering::Relaxed);
        let pretty = pretty(raw.as_str());
        self.data(&format!("{}\n", pretty.as_deref().unwrap_or(raw.as_str())));
    }

    /// Writes a message to stderr, unless `--quiet` is set.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            self.complain(&format!("{text}\n"));
        }
    }

    /// Writes an error or warning to stderr, even with `--quiet`.
    pub(crate) fn complain(self, text: &str) {
        let text = painted(text, self.colour.wanted(io::stderr().is_terminal()));
        // If stderr is closed, there is no other way to report it.
        let _ = write_all(io::stderr().lock(), &text);
    }

    /// Writes the diagnostics of a file to stderr.
    pub(crate) fn diagnostics(self, diagnostics: &Diagnostics) {
        self.complain(&diagnostics.render(self.colour.wanted(io::stderr().is_terminal())));
    }

    /// Warns once about deprecated entries in a file, unless `--quiet` is set.
    pub(crate) fn warn_of_deprecated(self, diagnostics: &Diagnostics) {
        let mut deprecated = diagnostics.items().iter().filter(|it| it.code == DEPRECATED);
        let Some(first) = deprecated.next() else { return };
        let lines = Lines::of(diagnostics.source());
        let at = first.place.map(|it| format!(":{}", lines.position(it.start).0)).unwrap_or_default();
        let more = match deprecated.count() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let (file, message) = (diagnostics.file(), &first.message);
        self.say(&format!("warning: {message} ({file}{at}{more})"));
        if let Some(hint) = &first.hint {
            self.say(&format!("help: {hint}"));
        }
    }

    /// Reports an error as text or as the JSON document, and returns its exit code.
    pub(crate) fn fail(self, error: &CommandError) -> Exit {
        self.fail_with(error, &[])
    }

    /// Reports an error like [`Output::fail`], with additional keys in the JSON document.
    pub(crate) fn fail_with(self, error: &CommandError, more: &[(&str, Value)]) -> Exit {
        if !self.json {
            self.complain(error.to_text());
        } else if !IS_PRINTED.load(Ordering::Relaxed) {
            let mut document = self.document.failed(error.to_json());
            more.iter().for_each(|(key, value)| document[*key] = value.clone());
            self.json(&document);
        }
        error.exit
    }

    /// Reports a file that cannot be loaded.
    pub(crate) fn fail_loading(self, diagnostics: &Diagnostics) -> Exit {
        if !self.json {
            self.diagnostics(diagnostics);
        }
        let error = CommandError::of_file(diagnostics);
        self.fail_with(&error, &[("diagnostics", diagnostics.to_json())])
    }

    /// Checks whether stdout is a terminal and the output is text.
    pub(crate) fn is_for_a_person(self) -> bool {
        !self.json && io::stdout().is_terminal()
    }
}

/// Returns the final exit code. Reports an error if stdout could not be written.
pub(crate) fn checked(exit: Exit) -> Exit {
    let Some(why) = NOT_WRITTEN.get() else { return exit };
    // If stderr cannot be written either, there is no way to report it.
    let _ = write_all(io::stderr().lock(), &format!("error: standard output cannot be written: {why}\n"));
    if exit == Exit::Fine { Exit::NotWritten } else { exit }
}

fn write_all(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// Colours the label at the start of each line.
fn painted(text: &str, in_colour: bool) -> String {
    if !in_colour {
        return text.to_owned();
    }
    let line = |line: &str| {
        let words = line.trim_start();
        let Some((label, colour)) = COLOURS.iter().find(|(label, _)| words.starts_with(label)) else {
            return line.to_owned();
        };
        let (indent, rest) = (&line[..line.len() - words.len()], &words[label.len()..]);
        format!("{indent}\x1b[{colour}m{label}\x1b[0m{rest}")
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::painted;

    #[test]
    fn only_the_first_word_of_a_line_is_coloured() {
        let text = "ok    todo\nFAIL  far  x\n      help: y\n  | error: z\nerror: a\nwarning: b";
        assert_eq!(
            painted(text, true),
            "\x1b[32mok \x1b[0m   todo\n\x1b[1;31mFAIL \x1b[0m far  x\n      \x1b[1;36mhelp:\x1b[0m y\n  | error: z\n\
             \x1b[1;31merror:\x1b[0m a\n\x1b[1;33mwarning:\x1b[0m b"
        );
        assert_eq!(painted(text, false), text);
    }
}
