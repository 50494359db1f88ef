//! Writes data to stdout and messages to stderr. A closed pipe is not an error; a full disk is.

mod document;

use crate::{cli::Colour, command_error::CommandError, exit::Exit, pretty_json::pretty};
pub(crate) use document::JsonDocument;
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
const LABEL_COLOURS: [(&str, &str); 7] = [
    ("error:", "1;31"),
    ("FAIL ", "1;31"),
    ("warning:", "1;33"),
    ("warn ", "1;33"),
    ("help:", "1;36"),
    ("note:", "1;36"),
    ("ok ", "32"),
];

/// Diagnostic code of deprecated entries.
const DEPRECATED_CODE: &str = "V-15";

/// The first error while writing to stdout.
static WRITE_ERROR: OnceLock<String> = OnceLock::new();

/// Whether the `--json` document has been printed. A command prints only one.
static IS_PRINTED: AtomicBool = AtomicBool::new(false);

/// The output format of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) colour: Colour,
    pub(crate) document: JsonDocument,
}

impl Output {
    /// Writes text to stdout.
    pub(crate) fn data(self, text: &str) {
        match write_all(io::stdout().lock(), text) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                // Keep the first error.
                let _ = WRITE_ERROR.set(error.to_string());
            }
            // A broken pipe (`wharf schema | head`) means that the reader has seen enough.
            Ok(()) | Err(_) => {}
        }
    }

    /// Writes lines that begin with a state (`ok`, `warn` or `FAIL`) to stdout, in colour if wanted.
    pub(crate) fn print_states(self, text: &str) {
        self.data(&paint_labels(text, self.colour.is_enabled(io::stdout().is_terminal())));
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
    pub(crate) fn print_info(self, text: &str) {
        if !self.quiet {
            self.print_error(&format!("{text}\n"));
        }
    }

    /// Writes an error or warning to stderr, even with `--quiet`.
    pub(crate) fn print_error(self, text: &str) {
        let text = paint_labels(text, self.colour.is_enabled(io::stderr().is_terminal()));
        // If stderr is closed, there is no other way to report it.
        let _ = write_all(io::stderr().lock(), &text);
    }

    /// Writes the diagnostics of a file to stderr.
    pub(crate) fn diagnostics(self, diagnostics: &Diagnostics) {
        self.print_error(&diagnostics.render(self.colour.is_enabled(io::stderr().is_terminal())));
    }

    /// Warns once about deprecated entries in a file, unless `--quiet` is set.
    pub(crate) fn warn_deprecated(self, diagnostics: &Diagnostics) {
        let mut deprecated = diagnostics.items().iter().filter(|it| it.code == DEPRECATED_CODE);
        let Some(first) = deprecated.next() else { return };
        let lines = Lines::of(diagnostics.source());
        let at = first.place.map(|it| format!(":{}", lines.position(it.start).0)).unwrap_or_default();
        let more = match deprecated.count() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let (file, message) = (diagnostics.file(), &first.message);
        self.print_info(&format!("warning: {message} ({file}{at}{more})"));
        if let Some(hint) = &first.hint {
            self.print_info(&format!("help: {hint}"));
        }
    }

    /// Reports an error as text or as the JSON document, and returns its exit code.
    pub(crate) fn fail(self, error: &CommandError) -> Exit {
        self.fail_with(error, &[])
    }

    /// Reports an error like [`Output::fail`], with additional keys in the JSON document.
    pub(crate) fn fail_with(self, error: &CommandError, more: &[(&str, Value)]) -> Exit {
        if !self.json {
            self.print_error(error.to_text());
        } else if !IS_PRINTED.load(Ordering::Relaxed) {
            let mut document = self.document.failure(error.to_json());
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
        let error = CommandError::from_diagnostics(diagnostics);
        self.fail_with(&error, &[("diagnostics", diagnostics.to_json())])
    }

    /// Checks whether stdout is a terminal and the output is text.
    pub(crate) fn is_for_terminal(self) -> bool {
        !self.json && io::stdout().is_terminal()
    }
}

/// Returns the final exit code. Reports an error if stdout could not be written.
pub(crate) fn final_exit(exit: Exit) -> Exit {
    let Some(why) = WRITE_ERROR.get() else { return exit };
    // If stderr cannot be written either, there is no way to report it.
    let _ = write_all(io::stderr().lock(), &format!("error: standard output cannot be written: {why}\n"));
    if exit == Exit::Success { Exit::OutputError } else { exit }
}

fn write_all(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// Colours the label at the start of each line.
fn paint_labels(text: &str, in_colour: bool) -> String {
    if !in_colour {
        return text.to_owned();
    }
    let line = |line: &str| {
        let words = line.trim_start();
        let Some((label, colour)) = LABEL_COLOURS.iter().find(|(label, _)| words.starts_with(label)) else {
            return line.to_owned();
        };
        let (indent, rest) = (&line[..line.len() - words.len()], &words[label.len()..]);
        format!("{indent}\x1b[{colour}m{label}\x1b[0m{rest}")
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::paint_labels;

    #[test]
    fn only_the_first_word_of_a_line_is_coloured() {
        let text = "ok    todo\nFAIL  far  x\n      help: y\n  | error: z\nerror: a\nwarning: b";
        assert_eq!(
            paint_labels(text, true),
            "\x1b[32mok \x1b[0m   todo\n\x1b[1;31mFAIL \x1b[0m far  x\n      \x1b[1;36mhelp:\x1b[0m y\n  | error: z\n\
             \x1b[1;31merror:\x1b[0m a\n\x1b[1;33mwarning:\x1b[0m b"
        );
        assert_eq!(paint_labels(text, false), text);
    }
}
