//! stdout is data, stderr is talk. A reader that has left is not an error.

use crate::cli::Colour;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use wharf_runtime::config::Diagnostics;

/// Where a command writes, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) colour: Colour,
}

impl Output {
    /// Data, as text.
    pub(crate) fn data(self, text: &str) {
        write_all(io::stdout().lock(), text);
    }

    /// Data, as one JSON document.
    pub(crate) fn json(self, value: &Value) {
        self.data(&format!("{value:#}\n"));
    }

    /// Talk. Not heard under `--quiet`.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            write_all(io::stderr().lock(), &format!("{text}\n"));
        }
    }

    /// What is wrong. Heard even under `--quiet`.
    pub(crate) fn complain(self, text: &str) {
        write_all(io::stderr().lock(), text);
    }

    /// What is wrong with a file.
    pub(crate) fn diagnostics(self, diagnostics: &Diagnostics) {
        self.complain(&diagnostics.render(self.colour.wanted(io::stderr().is_terminal())));
    }
}

fn write_all(mut to: impl Write, text: &str) {
    // A broken pipe (`wharf schema | head`) leaves nobody to tell.
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
