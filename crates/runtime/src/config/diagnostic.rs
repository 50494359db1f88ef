//! What is wrong with a file, collected so that it can be mended in one go.

use super::{complaint, grants::MissingGrant, mask::Mask, place::Place, suggest};
use std::{collections::HashSet, sync::Arc};

/// After this many complaints a file is only counted.
const MOST_SHOWN: usize = 200;
/// More complaints than this are not even kept: enough to bring the shown ones into file order.
const MOST_KEPT: usize = 1_000;
/// Candidates that all the did-you-means of one file may look at.
const MOST_GUESSED: u32 = 100_000;
/// A message is never longer than this, whatever it names.
const LONGEST_MESSAGE: usize = 8_000;

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
    /// The grant that would make it go away, where there is one and it may be shown.
    pub missing_grant: Option<MissingGrant>,
}

/// All complaints about one file, with the text they point into.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    file: String,
    source: Arc<str>,
    items: Vec<Diagnostic>,
    hidden: Vec<Place>,
    secrets_known: bool,
    /// What there was no room for: where it is written, and how often, errors first.
    overflow: Option<Box<Diagnostic>>,
    dropped: [u32; 2],
    guessed: u32,
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
        Diagnostics {
            file: file.into(),
            source: source.into(),
            items: Vec::new(),
            hidden: Vec::new(),
            secrets_known: false,
            overflow: None,
            dropped: [0; 2],
            guessed: 0,
        }
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
            + self.dropped[severity as usize] as usize
    }

    /// `--strict`: a missing description is an error, and nothing else changes.
    pub fn raise_missing_descriptions(&mut self) {
        for item in self.items.iter_mut().filter(|it| it.code == "V-14") {
            item.severity = Severity::Error;
            item.message = "ConfigError: 'description' is missing".to_owned();
        }
    }

    /// The text that the complaints point into.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What must not be shown of the source.
    pub(crate) fn mask(&self) -> Mask {
        Mask::new(&self.source, &self.hidden, !self.secrets_known)
    }

    /// From now on, what is hidden is all there is to hide.
    pub(crate) fn secrets_are_known(&mut self) {
        self.secrets_known = true;
    }

    /// The candidate that was meant, as long as guessing is cheap.
    pub(crate) fn closest<'a>(
        &mut self,
        written: &str,
        candidates: impl Iterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let guessed = &mut self.guessed;
        let affordable = candidates.take_while(|_| {
            *guessed += 1;
            *guessed <= MOST_GUESSED
        });
        suggest::closest(written, affordable)
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
        let item =
            Diagnostic { severity, code, message, place, hint: None, also: Vec::new(), missing_grant: None };
        if self.items.len() < MOST_KEPT {
            self.items.push(item);
            return self.items.last_mut().expect("one was pushed just now");
        }
        self.dropped[severity as usize] += 1;
        self.overflow.insert(Box::new(item))
    }

    /// Leaves out the warning about an empty variable where an error is about the value that it stands in.
    fn drop_explained_warnings(&mut self) {
        let is_error = |it: &&Diagnostic| it.severity == Severity::Error;
        let wrong: Vec<Place> = self.items.iter().filter(is_error).filter_map(|it| it.place).collect();
        let explained = |at: Place| wrong.iter().any(|it| it.start <= at.start && at.end <= it.end);
        self.items.retain(|it| {
            it.severity == Severity::Error || it.code != "V-09" || !it.place.is_some_and(explained)
        });
    }

    /// Brings the complaints into file order. What several entries share through an anchor complains once, and a
    /// file that is wrong from end to end is not listed from end to end.
    pub(crate) fn settle(&mut self) {
        self.drop_explained_warnings();
        self.items.sort_by_key(|it| it.place);
        let mut seen = HashSet::new();
        self.items.retain(|it| seen.insert((it.place, it.message.clone())));
        for item in &mut self.items {
            item.message = complaint::one_line(&item.message, LONGEST_MESSAGE);
            item.hint = item.hint.as_ref().map(|it| complaint::one_line(it, LONGEST_MESSAGE));
        }
        let unshown = self.items.split_off(self.items.len().min(MOST_SHOWN));
        let [errors, warnings] = std::mem::take(&mut self.dropped);
        let more = unshown.len() + errors as usize + warnings as usize;
        if more > 0 {
            let only_warnings = errors == 0 && unshown.iter().all(|it| it.severity == Severity::Warning);
            let (severity, class) =
                if only_warnings { (Severity::Warning, "") } else { (Severity::Error, "ConfigError: ") };
            self.push(severity, "F-02", None, format!("{class}and {more} more problems"))
                .hint("mend the ones above first, then check again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_wrong_from_end_to_end_is_counted() {
        let mut diagnostics = Diagnostics::new("agent.yaml", "x");
        for at in 0..5_000 {
            diagnostics.warning("V-14", Place::new(at, at), "late");
        }
        assert!(!diagnostics.has_errors());
        diagnostics.error("V-05", Place::new(0, 0), "only counted");
        assert!(diagnostics.has_errors());
        diagnostics.settle();
        let last = diagnostics.items().last().expect("there are complaints");
        assert_eq!(last.message, "ConfigError: and 4801 more problems");
        assert!(diagnostics.has_errors());
    }

    #[test]
    fn messages_stay_on_their_line() {
        let mut diagnostics = Diagnostics::new("agent.yaml", "x");
        diagnostics.error("V-05", Place::new(0, 0), "a\nb\u{1b}\u{202e}c").hint("x\ty");
        diagnostics.settle();
        assert_eq!(diagnostics.items()[0].message, "a\\nb\\u{1b}\\u{202e}c");
        assert_eq!(diagnostics.items()[0].hint.as_deref(), Some("x\\ty"));
    }
}
