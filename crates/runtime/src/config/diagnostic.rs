//! What is wrong with a file, collected so that it can be mended in one go.

use super::{mask, place::Place};
use std::{collections::HashSet, sync::Arc};

/// After this many complaints a file is only counted.
const MOST_SHOWN: usize = 200;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but its author should know.
    Warning,
}

/// One complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The rule behind it, such as `V-05`.
    pub code: &'static str,
    /// What is wrong, in words that the contract fixes where it does.
    pub message: String,
    /// Where it is wrong; `None` when the file as a whole is.
    pub place: Option<Place>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Other places that belong to it, each with a word on why.
    pub also: Vec<(Place, String)>,
}

/// All complaints about one file, with the text they point into.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    file: String,
    source: Arc<str>,
    items: Vec<Diagnostic>,
    hidden: Vec<Place>,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Diagnostic {
    pub(crate) fn hint(&mut self, hint: impl Into<String>) -> &mut Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn also(&mut self, at: Place, why: impl Into<String>) -> &mut Diagnostic {
        self.also.push((at, why.into()));
        self
    }
}

impl Diagnostics {
    /// No complaints yet about `file`, whose text is `source`.
    pub fn new(file: impl Into<String>, source: impl Into<Arc<str>>) -> Diagnostics {
        Diagnostics { file: file.into(), source: source.into(), items: Vec::new(), hidden: Vec::new() }
    }

    /// The one complaint that a file cannot be read at all.
    pub fn unreadable(
        file: impl Into<String>,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Diagnostics {
        let mut diagnostics = Diagnostics::new(file, "");
        diagnostics.push(Severity::Error, "F-01", None, message.into()).hint = hint;
        diagnostics
    }

    /// The complaints, in the order of the file.
    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }

    /// The name of the file, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Whether the file cannot be used.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// How many complaints there are of one severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.items.iter().filter(|it| it.severity == severity).count()
    }

    /// `--strict`: a missing description is an error, and nothing else changes.
    pub fn raise_missing_descriptions(&mut self) {
        for item in self.items.iter_mut().filter(|it| it.code == "V-14") {
            item.severity = Severity::Error;
        }
    }

    /// The text that the complaints point into.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text to quote from: the source with everything that must not be shown struck out.
    pub(crate) fn quotable(&self) -> String {
        mask::strike_out(&self.source, &self.hidden)
    }

    /// From now on, nothing of this place is quoted.
    pub(crate) fn hide(&mut self, place: Place) {
        self.hidden.push(place);
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        at: Place,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Error, code, Some(at), message.into())
    }

    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        at: Place,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Warning, code, Some(at), message.into())
    }

    pub(crate) fn whole_file(&mut self, code: &'static str, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Error, code, None, message.into())
    }

    fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        place: Option<Place>,
        message: String,
    ) -> &mut Diagnostic {
        self.items.push(Diagnostic { severity, code, message, place, hint: None, also: Vec::new() });
        self.items.last_mut().expect("one was pushed just now")
    }

    /// Brings the complaints into file order. What several entries share through an anchor complains once, and a
    /// file that is wrong from end to end is not listed from end to end.
    pub(crate) fn settle(&mut self) {
        self.items.sort_by_key(|it| it.place);
        let mut seen = HashSet::new();
        self.items.retain(|it| seen.insert((it.place, it.message.clone())));
        let more = self.items.len().saturating_sub(MOST_SHOWN);
        if more > 0 {
            self.items.truncate(MOST_SHOWN);
            self.whole_file("F-02", format!("ConfigError: and {more} more problems"))
                .hint("mend the ones above first, then check again");
        }
    }
}
