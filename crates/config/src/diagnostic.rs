//! Collects all diagnostics about a file, so that the user can fix them in one go.

use super::{echo::one_line, grants::MissingGrant, mask::Mask, place::Place, suggest};
use std::{collections::HashSet, sync::Arc};

/// Maximum number of diagnostics shown. Further ones are only counted.
const MAX_SHOWN: usize = 200;
/// Maximum number of diagnostics kept: enough to sort the shown ones into file order.
const MAX_KEPT: usize = 1_000;
/// Maximum number of candidates that all did-you-mean suggestions of one file may compare.
const MAX_COMPARED_CANDIDATES: u32 = 100_000;
/// Maximum length of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 8_000;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but its author should know about the problem.
    Warning,
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity of the diagnostic.
    pub severity: Severity,
    /// Code of the violated rule, such as `V-05`.
    pub code: &'static str,
    /// Description of the problem. The contract fixes the wording of some messages.
    pub message: String,
    /// Place of the problem. `None` means the whole file.
    pub place: Option<Place>,
    /// Advice for fixing the problem.
    pub hint: Option<String>,
    /// Related places, each with a short label.
    pub related: Vec<(Place, String)>,
    /// Grant that would resolve the problem, if there is one and it may be shown.
    pub missing_grant: Option<MissingGrant>,
}

/// All diagnostics about one file, with the text they point into.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    file: String,
    source: Arc<str>,
    items: Vec<Diagnostic>,
    hidden: Vec<Place>,
    pub(crate) secrets_known: bool,
    /// The latest diagnostic beyond the limit. `dropped` counts all of them, errors first.
    overflow: Option<Box<Diagnostic>>,
    dropped: [u32; 2],
    compared_candidates: u32,
}

impl Severity {
    /// Returns the name of the severity.
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

    pub(crate) fn related(&mut self, at: Place, why: impl Into<String>) -> &mut Diagnostic {
        self.related.push((at, why.into()));
        self
    }
}

impl Diagnostics {
    /// Creates an empty collection for `file`, whose text is `source`.
    pub fn new(file: impl Into<String>, source: impl Into<Arc<str>>) -> Diagnostics {
        Diagnostics {
            file: file.into(),
            source: source.into(),
            items: Vec::new(),
            hidden: Vec::new(),
            secrets_known: false,
            overflow: None,
            dropped: [0; 2],
            compared_candidates: 0,
        }
    }

    /// Creates a collection with one error: the file cannot be read at all.
    pub fn unreadable(
        file: impl Into<String>,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Diagnostics {
        let mut diagnostics = Diagnostics::new(file, "");
        diagnostics.push(Severity::Error, "F-01", None, message.into()).hint = hint;
        diagnostics
    }

    /// Returns the diagnostics, in file order.
    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }

    /// Returns the name of the file, as given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns whether there is at least one error, so that the file cannot be used.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Counts the diagnostics of one severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.items.iter().filter(|it| it.severity == severity).count()
            + self.dropped[severity as usize] as usize
    }

    /// Turns missing descriptions into errors, for `--strict`.
    pub fn raise_missing_descriptions(&mut self) {
        for item in self.items.iter_mut().filter(|it| it.code == "V-14") {
            item.severity = Severity::Error;
            item.message = "ConfigError: 'description' is missing".to_owned();
        }
    }

    /// Returns the text that the diagnostics point into.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the places that the loader knows to hold secrets.
    pub(crate) fn hidden(&self) -> &[Place] {
        &self.hidden
    }

    /// Returns the mask of the parts of the source that must not be shown.
    pub(crate) fn mask(&self) -> Mask {
        Mask::new(&self.source, &self.hidden, !self.secrets_known)
    }

    /// Returns the closest candidate, unless the budget for suggestions is used up.
    pub(crate) fn closest<'a>(
        &mut self,
        written: &str,
        candidates: impl Iterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let compared_candidates = &mut self.compared_candidates;
        let affordable = candidates.take_while(|_| {
            *compared_candidates += 1;
            *compared_candidates <= MAX_COMPARED_CANDIDATES
        });
        suggest::closest(written, affordable)
    }

    /// Excludes this place from all quotations of the source.
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

    pub(crate) fn file_level_error(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Error, code, None, message.into())
    }

    pub(crate) fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        place: Option<Place>,
        message: String,
    ) -> &mut Diagnostic {
        let item = Diagnostic {
            severity,
            code,
            message,
            place,
            hint: None,
            related: Vec::new(),
            missing_grant: None,
        };
        if self.items.len() < MAX_KEPT {
            self.items.push(item);
            return self.items.last_mut().expect("one was pushed just now");
        }
        self.dropped[severity as usize] += 1;
        self.overflow.insert(Box::new(item))
    }

    /// Drops warnings about an empty variable if an error covers the value that contains it.
    fn drop_explained_warnings(&mut self) {
        let is_error = |it: &&Diagnostic| it.severity == Severity::Error;
        let wrong: Vec<Place> = self.items.iter().filter(is_error).filter_map(|it| it.place).collect();
        let explained = |at: Place| wrong.iter().any(|it| it.start <= at.start && at.end <= it.end);
        self.items.retain(|it| {
            it.severity == Severity::Error || it.code != "V-09" || !it.place.is_some_and(explained)
        });
    }

    /// Sorts the diagnostics into file order, removes duplicates that an anchor causes in several entries, and limits
    /// their number.
    pub(crate) fn finish(&mut self) {
        self.drop_explained_warnings();
        self.items.sort_by_key(|it| it.place);
        let mut seen = HashSet::new();
        self.items.retain(|it| seen.insert((it.place, it.message.clone())));
        for item in &mut self.items {
            item.message = one_line(&item.message, MAX_MESSAGE_CHARS);
            item.hint = item.hint.as_ref().map(|it| one_line(it, MAX_MESSAGE_CHARS));
        }
        let unshown = self.items.split_off(self.items.len().min(MAX_SHOWN));
        let [errors, warnings] = std::mem::take(&mut self.dropped);
        let more = unshown.len() + errors as usize + warnings as usize;
        if more > 0 {
            let only_warnings = errors == 0 && unshown.iter().all(|it| it.severity == Severity::Warning);
            let (severity, class) =
                if only_warnings { (Severity::Warning, "") } else { (Severity::Error, "ConfigError: ") };
            self.push(severity, "F-02", None, format!("{class}and {more} more problems"))
                .hint("fix the problems above first, then check again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_beyond_the_limit_are_counted() {
        let mut diagnostics = Diagnostics::new("agent.yaml", "x");
        for at in 0..5_000 {
            diagnostics.warning("V-14", Place::new(at, at), "late");
        }
        assert!(!diagnostics.has_errors());
        diagnostics.error("V-05", Place::new(0, 0), "only counted");
        assert!(diagnostics.has_errors());
        diagnostics.finish();
        let last = diagnostics.items().last().expect("there are diagnostics");
        assert_eq!(last.message, "ConfigError: and 4801 more problems");
        assert!(diagnostics.has_errors());
    }

    #[test]
    fn messages_are_escaped_to_one_line() {
        let mut diagnostics = Diagnostics::new("agent.yaml", "x");
        diagnostics.error("V-05", Place::new(0, 0), "a\nb\u{1b}\u{202e}c").hint("x\ty");
        diagnostics.finish();
        assert_eq!(diagnostics.items()[0].message, "a\\nb\\u{1b}\\u{202e}c");
        assert_eq!(diagnostics.items()[0].hint.as_deref(), Some("x\\ty"));
    }
}
