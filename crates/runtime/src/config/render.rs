//! Shows complaints the way rustc shows them: what, where, the line itself, and what to do.

use super::{
    diagnostic::{Diagnostic, Diagnostics, Severity},
    place::{Lines, Place},
};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde_json::{Value, json};

/// Lines wider than this are cut around the place in question.
const WIDTH: usize = 140;
/// A quotation longer than this is left out: a line of a megabyte helps nobody.
const LONGEST_QUOTE: usize = 16 * 1024;

impl Diagnostics {
    /// All complaints as text, with a closing line that counts them.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH);
        let quotable = self.quotable();
        let lines = Lines::of(&quotable);
        let mut out = String::new();
        for item in self.items() {
            out.push_str(&renderer.render(&[self.report(item, &quotable, &lines)]));
            out.push_str("\n\n");
        }
        if let Some(summary) = self.summary() {
            out.push_str(&summary);
            out.push('\n');
        }
        out
    }

    /// `agent.yaml: 2 errors, 1 warning`; nothing when there is nothing to say.
    pub fn summary(&self) -> Option<String> {
        let counted: Vec<String> = [Severity::Error, Severity::Warning]
            .into_iter()
            .map(|severity| (self.count(severity), severity.as_str()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
            .collect();
        (!counted.is_empty()).then(|| format!("{}: {}", self.file(), counted.join(", ")))
    }

    /// One object per complaint, for programs.
    pub fn to_json(&self) -> Value {
        let lines = Lines::of(self.source());
        self.items().iter().map(|it| self.item_to_json(it, &lines)).collect()
    }

    fn item_to_json(&self, item: &Diagnostic, lines: &Lines<'_>) -> Value {
        let (line, column) = item.place.map(|place| lines.position(place.start)).unzip();
        json!({
            "severity": item.severity.as_str(),
            "code": item.code,
            "message": item.message,
            "file": self.file(),
            "line": line,
            "column": column,
            "hint": item.hint,
        })
    }

    fn report<'a>(&'a self, item: &'a Diagnostic, quotable: &'a str, lines: &Lines<'_>) -> Group<'a> {
        let level = match item.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let group = Group::with_title(level.primary_title(item.message.as_str()));
        let group = match item.place {
            None => group.element(Origin::path(self.file())),
            Some(place) => self.quote(group, item, place, quotable, lines),
        };
        match &item.hint {
            Some(hint) => group.element(Level::HELP.message(hint.as_str())),
            None => group,
        }
    }

    fn quote<'a>(
        &'a self,
        group: Group<'a>,
        item: &'a Diagnostic,
        place: Place,
        quotable: &'a str,
        lines: &Lines<'_>,
    ) -> Group<'a> {
        let starts = || item.also.iter().map(|(at, _)| at.start).chain([place.start]);
        let (first, last) = (starts().min().unwrap_or_default(), starts().max().unwrap_or_default());
        let (line, quote) = lines.around(first, last);
        let Some(text) = quotable.get(quote.start..quote.end).filter(|it| it.len() <= LONGEST_QUOTE) else {
            let (line, column) = lines.position(place.start);
            return group.element(Origin::path(self.file()).line(line).char_column(column));
        };
        // A place may run over several lines; the first is enough to find it.
        let span = |at: Place| {
            let start = at.start.saturating_sub(quote.start).min(text.len());
            let end = at.end.saturating_sub(quote.start).min(text.len());
            let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
            start..end.min(line_end)
        };
        let primary: Annotation<'_> = AnnotationKind::Primary.span(span(place));
        let others =
            item.also.iter().map(|(at, why)| AnnotationKind::Context.span(span(*at)).label(why.as_str()));
        let snippet = Snippet::source(text).line_start(line).path(self.file());
        group.element(snippet.annotation(primary).annotations(others))
    }
}
