//! Renders diagnostics in the style of rustc: message, place, source line and hint.

use super::{
    diagnostic::{Diagnostic, Diagnostics, Severity},
    mask::Mask,
    place::{Lines, Place},
};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde_json::{Value, json};
use std::ops::Range;

/// Maximum width of a rendered line. Longer lines are cut around the place.
const WIDTH: usize = 140;
/// Maximum size of a quotation, in bytes. A longer one is omitted.
const MAX_QUOTE_BYTES: usize = 16 * 1024;

/// Source lines to show, with the ranges to underline.
struct QuotedLines {
    line: usize,
    text: String,
    primary: Range<usize>,
    others: Vec<(Range<usize>, String)>,
}

impl Diagnostics {
    /// Renders all diagnostics as text, followed by a line that counts them.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH);
        let lines = Lines::of(self.source());
        let mask = self.mask();
        let mut out = String::new();
        for item in self.items() {
            let quote = item.place.and_then(|place| self.quote(item, place, &lines, &mask));
            out.push_str(&renderer.render(&[self.report(item, quote.as_ref(), &lines)]));
            out.push_str("\n\n");
        }
        if let Some(summary) = self.summary() {
            out.push_str(&summary);
            out.push('\n');
        }
        out
    }

    /// Returns a summary such as `agent.yaml: 2 errors, 1 warning`, or `None` if there are no diagnostics.
    pub fn summary(&self) -> Option<String> {
        let counted: Vec<String> = [Severity::Error, Severity::Warning]
            .into_iter()
            .map(|severity| (self.count(severity), severity.as_str()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
            .collect();
        (!counted.is_empty()).then(|| format!("{}: {}", self.file(), counted.join(", ")))
    }

    /// Returns the diagnostics as JSON, one object each.
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

    fn report<'a>(
        &'a self,
        item: &'a Diagnostic,
        quote: Option<&'a QuotedLines>,
        lines: &Lines<'_>,
    ) -> Group<'a> {
        let level = match item.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let group = Group::with_title(level.primary_title(item.message.as_str()));
        let group = match (item.place, quote) {
            (_, Some(quote)) => group.element(self.snippet(quote)),
            (Some(place), None) => {
                let (line, column) = lines.position(place.start);
                group.element(Origin::path(self.file()).line(line).char_column(column))
            }
            (None, None) => group.element(Origin::path(self.file())),
        };
        let group = match &item.hint {
            Some(hint) => group.element(Level::HELP.message(hint.as_str())),
            None => group,
        };
        group.element(Level::NOTE.message(item.code))
    }

    /// Quotes the lines around a place, together with its related places if they are close enough.
    fn quote(&self, item: &Diagnostic, place: Place, lines: &Lines<'_>, mask: &Mask) -> Option<QuotedLines> {
        let starts = || item.related.iter().map(|(at, _)| at.start).chain([place.start]);
        let (first, last) = (starts().min()?, starts().max()?);
        let fits = |(_, part): &(usize, Place)| part.end - part.start <= MAX_QUOTE_BYTES;
        let with_others = Some(lines.around(first, last)).filter(fits);
        let whole = with_others.is_some();
        let (line, part) =
            with_others.or_else(|| Some(lines.around(place.start, place.start)).filter(fits))?;
        let masked = mask.quote(self.source(), part);
        // A place may span several lines. Underlining the first is enough.
        let span = |at: Place| {
            let (start, end) = (masked.position(at.start), masked.position(at.end));
            let line_end = masked.text[start..].find('\n').map_or(masked.text.len(), |it| start + it);
            start..end.clamp(start, line_end)
        };
        let others =
            item.related.iter().filter(|_| whole).map(|(at, why)| (span(*at), why.clone())).collect();
        Some(QuotedLines { line, primary: span(place), others, text: masked.text })
    }

    fn snippet<'a>(&'a self, quote: &'a QuotedLines) -> Snippet<'a, Annotation<'a>> {
        let QuotedLines { line, text, primary, others } = quote;
        let others =
            others.iter().map(|(span, why)| AnnotationKind::Context.span(span.clone()).label(why.as_str()));
        Snippet::source(text.as_str())
            .line_start(*line)
            .path(self.file())
            .annotation(AnnotationKind::Primary.span(primary.clone()))
            .annotations(others)
    }
}
