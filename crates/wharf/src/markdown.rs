//! Renders the Markdown of a model for a terminal, while it arrives.
//!
//! Printed text is never changed afterwards, so a marker is held back until the next characters tell its meaning. Text
//! of a model cannot control the terminal: every escape sequence is written here, and control and bidirectional
//! characters of the model are left out.

use crate::content::is_printable;

/// Maximum size of a link that is held back, in bytes.
const MAX_LINK_BYTES: usize = 2048;
/// Maximum size of the beginning of a line that is held back, in bytes.
const MAX_PREFIX_BYTES: usize = 64;

const BOLD: &str = "\x1b[1m";
const NOT_BOLD: &str = "\x1b[22m";
const CODE: &str = "\x1b[36m";
const NOT_CODE: &str = "\x1b[39m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// Position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the beginning of a line, whose kind is not known yet.
    LineStart,
    /// In a paragraph, a list item or a quotation.
    Text,
    /// In a heading.
    Heading,
    /// In the line that opens a code block.
    FenceLine,
    /// In a line of a code block.
    CodeLine,
}

/// Fence that opened a code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    marker: char,
    length: usize,
}

/// Markdown under way.
#[derive(Debug)]
pub(crate) struct MarkdownStream {
    in_colour: bool,
    place: Place,
    fence: Option<Fence>,
    /// Characters whose meaning is not known yet.
    held: String,
    /// Number of backticks that opened inline code.
    code: Option<usize>,
    is_bold: bool,
    /// Last character before the held ones.
    last: char,
    out: String,
}

impl MarkdownStream {
    /// Creates a renderer. Without colour it only filters: Markdown is readable as it is.
    pub(crate) fn new(in_colour: bool) -> MarkdownStream {
        MarkdownStream {
            in_colour,
            place: Place::LineStart,
            fence: None,
            held: String::new(),
            code: None,
            is_bold: false,
            last: ' ',
            out: String::new(),
        }
    }

    /// Renders more text.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let printable = text.chars().filter(|c| is_printable(*c));
        if !self.in_colour {
            return printable.collect();
        }
        printable.for_each(|c| self.push_char(c));
        std::mem::take(&mut self.out)
    }

    /// Renders what is held back, and begins again.
    pub(crate) fn finish(&mut self) -> String {
        self.end_line();
        let out = std::mem::take(&mut self.out);
        *self = MarkdownStream::new(self.in_colour);
        out
    }

    fn push_char(&mut self, c: char) {
        if c == '\n' {
            self.end_line();
            self.out.push('\n');
            return;
        }
        match self.place {
            Place::LineStart => {
                self.held.push(c);
                self.begin_line();
            }
            Place::FenceLine => self.held.push(c),
            Place::CodeLine => self.out.push(c),
            Place::Text | Place::Heading => self.push_inline(c),
        }
    }

    /// Decides the kind of a line, once its beginning is clear.
    fn begin_line(&mut self) {
        let line = self.held.trim_start();
        if let Some(fence) = self.fence {
            if line.chars().any(|it| it != fence.marker) || self.held.len() > MAX_PREFIX_BYTES {
                self.place = Place::CodeLine;
                let held = std::mem::take(&mut self.held);
                self.out.push_str(&format!("{CODE}{held}"));
            }
            return;
        }
        match LineKind::of(line) {
            LineKind::Unclear if self.held.len() <= MAX_PREFIX_BYTES => {}
            LineKind::Unclear | LineKind::Text => self.begin_text(""),
            LineKind::Fence(fence) => {
                self.fence = Some(fence);
                self.place = Place::FenceLine;
            }
            LineKind::Heading => {
                self.held.clear();
                self.place = Place::Heading;
                self.out.push_str(BOLD);
            }
            LineKind::Bullet => self.begin_text("• "),
            LineKind::Quotation => self.begin_text("│ "),
        }
    }

    /// Begins a line of text. A marker replaces the held one, behind the same indentation.
    fn begin_text(&mut self, marker: &str) {
        self.place = Place::Text;
        let held = std::mem::take(&mut self.held);
        let indent = held.len() - held.trim_start().len();
        self.out.push_str(&held[..indent]);
        self.last = ' ';
        match marker {
            "" => held[indent..].chars().for_each(|c| self.push_inline(c)),
            marker => self.out.push_str(marker),
        }
    }

    fn end_line(&mut self) {
        match self.place {
            Place::LineStart => self.end_unclear_line(),
            Place::FenceLine => self.print_fence(),
            Place::CodeLine => self.out.push_str(NOT_CODE),
            Place::Text | Place::Heading => {
                self.print_held('\n');
                if self.is_bold || self.code.is_some() || self.place == Place::Heading {
                    self.out.push_str(RESET);
                }
                (self.is_bold, self.code) = (false, None);
            }
        }
        self.held.clear();
        self.place = Place::LineStart;
    }

    /// Ends a line that consists of markers only: a fence, a rule, or plain text.
    fn end_unclear_line(&mut self) {
        let line = self.held.trim();
        match self.fence {
            Some(fence) if line.len() >= fence.length => {
                self.fence = None;
                self.print_fence();
            }
            Some(_) => self.out.push_str(&self.held),
            None if line.len() >= 3 && line.chars().all(|it| it == '-' || it == '*') => {
                self.out.push_str(&format!("{DIM}{}{RESET}", "─".repeat(24)));
            }
            None => self.out.push_str(&self.held),
        }
    }

    fn print_fence(&mut self) {
        self.out.push_str(&format!("{DIM}{}{RESET}", self.held));
    }

    fn push_inline(&mut self, c: char) {
        if self.held.starts_with('[') {
            return self.push_link(c);
        }
        if !self.held.is_empty() {
            let repeats =
                self.held.ends_with(c) && matches!(c, '*' | '`') && self.held.len() < MAX_PREFIX_BYTES;
            if repeats {
                self.held.push(c);
                return;
            }
            if self.held == "\\" && c.is_ascii_punctuation() {
                self.held.clear();
                self.print(c);
                return;
            }
            self.print_held(c);
        }
        let is_held = match self.code {
            Some(_) => c == '`',
            None => matches!(c, '*' | '`' | '[' | '\\'),
        };
        match is_held {
            true => self.held.push(c),
            false => self.print(c),
        }
    }

    /// Holds a link back until its address is complete, and shows the address behind the text.
    fn push_link(&mut self, c: char) {
        let is_text_over = self.held.contains(']');
        let is_address = self.held.contains("](");
        if self.held.len() > MAX_LINK_BYTES || is_text_over && !is_address && c != '(' {
            self.print_held(c);
            return self.push_inline(c);
        }
        self.held.push(c);
        if c != ')' || !is_address {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let link = held.trim_start_matches('[').trim_end_matches(')');
        let (text, address) = link.split_once("](").unwrap_or((link, ""));
        match text == address {
            true => self.out.push_str(text),
            false => self.out.push_str(&format!("{text} ({address})")),
        }
        self.last = ')';
    }

    /// Prints the held characters, now that the next one is known.
    fn print_held(&mut self, next: char) {
        let held = std::mem::take(&mut self.held);
        let in_heading = self.place == Place::Heading;
        match held.chars().next() {
            Some('`') => match self.code {
                Some(length) if length == held.len() => {
                    self.code = None;
                    self.out.push_str(NOT_CODE);
                }
                Some(_) => self.out.push_str(&held),
                None if next == '\n' => self.out.push_str(&held),
                None => {
                    self.code = Some(held.len());
                    self.out.push_str(CODE);
                }
            },
            Some('*') if held == "**" && self.is_bold && !self.last.is_whitespace() => {
                self.is_bold = false;
                self.out.push_str(if in_heading { "" } else { NOT_BOLD });
            }
            Some('*') if held == "**" && !self.is_bold && !next.is_whitespace() => {
                self.is_bold = true;
                self.out.push_str(if in_heading { "" } else { BOLD });
            }
            _ => self.out.push_str(&held),
        }
        self.last = held.chars().next_back().unwrap_or(self.last);
    }

    fn print(&mut self, c: char) {
        self.out.push(c);
        self.last = c;
    }
}

/// Kind of a line, by its first characters.
#[derive(Debug, PartialEq, Eq)]
enum LineKind {
    Unclear,
    Text,
    Heading,
    Bullet,
    Quotation,
    Fence(Fence),
}

impl LineKind {
    fn of(line: &str) -> LineKind {
        let Some(marker) = line.chars().next() else { return LineKind::Unclear };
        let rest = line.trim_start_matches(marker);
        let (length, next) = (line.len() - rest.len(), rest.chars().next());
        match (marker, length, next) {
            ('#', 1..=6, Some(' ')) => LineKind::Heading,
            ('-' | '*' | '+', 1, Some(' ')) => LineKind::Bullet,
            ('>', 1, Some(' ')) => LineKind::Quotation,
            ('`' | '~', 3.., _) => LineKind::Fence(Fence { marker, length }),
            ('#' | '-' | '*' | '+' | '>' | '`' | '~', _, None) => LineKind::Unclear,
            _ => LineKind::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names the escape sequences, so that a row can be read.
    fn named(text: &str) -> String {
        [(BOLD, "<b>"), (NOT_BOLD, "</b>"), (CODE, "<c>"), (NOT_CODE, "</c>"), (DIM, "<d>"), (RESET, "</>")]
            .iter()
            .fold(text.to_owned(), |text, (escape, name)| text.replace(escape, name))
    }

    const ROWS: [(&str, &str); 18] = [
        ("plain", "plain"),
        ("# Title\ntext", "<b>Title</>\ntext"),
        ("#hash", "#hash"),
        ("- one\n  - two\n* three", "• one\n  • two\n• three"),
        ("1. one\n2. two", "1. one\n2. two"),
        ("> said", "│ said"),
        ("a **b** c", "a <b>b</b> c"),
        ("**b**\n**open\nx", "<b>b</b>\n<b>open</>\nx"),
        ("2 * 3 ** 4 *i*", "2 * 3 ** 4 *i*"),
        ("`a*b` and ``c`d``", "<c>a*b</c> and <c>c`d</c>"),
        ("`open\nx", "<c>open</>\nx"),
        ("[wharf](https://w.example) ok", "wharf (https://w.example) ok"),
        ("[x] done, [a][b], [", "[x] done, [a][b], ["),
        ("[https://w](https://w)", "https://w"),
        ("```rust\nlet **a** = `1`;\n```\nb", "<d>```rust</>\n<c>let **a** = `1`;</c>\n<d>```</>\nb"),
        ("~~~\n```\n~~~", "<d>~~~</>\n<c>```</c>\n<d>~~~</>"),
        ("---\n\\*a\\*", "<d>────────────────────────</>\n*a*"),
        ("\u{1b}[31mred\u{7}\u{202e}\r\n\u{9b}x", "[31mred\nx"),
    ];

    #[test]
    fn every_chunking_renders_the_same() {
        for (text, expected) in ROWS {
            for size in [1, 2, 3, 5, usize::MAX] {
                let mut stream = MarkdownStream::new(true);
                let chars: Vec<char> = text.chars().collect();
                let mut shown = String::new();
                for chunk in chars.chunks(size.min(chars.len())) {
                    shown += &stream.push(&chunk.iter().collect::<String>());
                }
                shown += &stream.finish();
                assert_eq!(named(&shown), expected, "{text:?} in chunks of {size}");
            }
        }
    }

    #[test]
    fn without_colour_the_source_is_shown_without_control_characters() {
        let mut stream = MarkdownStream::new(false);
        let shown = stream.push("# **A** `b`\u{1b}[2J\u{202e} [c](d)\n") + &stream.finish();
        assert_eq!(shown, "# **A** `b`[2J [c](d)\n");
    }

    #[test]
    fn words_are_shown_at_once_and_long_links_are_bounded() {
        let mut stream = MarkdownStream::new(true);
        assert_eq!(stream.push("Hel"), "Hel", "text without a marker is not held back");
        assert_eq!(stream.push("lo [link](http://"), "lo ");
        assert_eq!(stream.push("x) "), "link (http://x) ");
        let shown = stream.push(&format!("[{}", "a".repeat(2 * MAX_LINK_BYTES)));
        assert!(shown.len() > MAX_LINK_BYTES, "a link without an end is shown after all");
    }
}
