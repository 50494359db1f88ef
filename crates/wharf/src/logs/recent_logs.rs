//! The latest log lines, in memory: what servers write to stderr or send as log messages, exceptions, and wharf's own
//! log. They are redacted before they get here, and bounded in number and bytes.

use std::{
    collections::VecDeque,
    fmt::{self, Write},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tracing::{Event, Level, Subscriber, field::Field};
use tracing_subscriber::layer::{Context, Layer};
use wharf_runtime::EventKind;

/// Maximum number of lines, and of bytes of all their texts together.
const MAX_LINES: usize = 10_000;
const MAX_BYTES: usize = 4 << 20;

/// Maximum length of one text, in bytes.
const MAX_TEXT_BYTES: usize = 2_048;

/// Names of the levels, the least severe first, as MCP has them.
pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct LogLine {
    /// Number of the line, which only grows.
    pub(crate) number: u64,
    pub(crate) at: SystemTime,
    /// The server; empty for wharf's own lines.
    pub(crate) source: String,
    /// `stderr`, `log`, `exception` or `wharf`.
    pub(crate) kind: &'static str,
    /// Index of its level in [`LEVELS`].
    pub(crate) level: usize,
    pub(crate) text: String,
}

/// The latest lines.
#[derive(Debug, Default)]
pub(crate) struct RecentLogs(Mutex<LogRing>);

#[derive(Debug, Default)]
struct LogRing {
    lines: VecDeque<LogLine>,
    bytes: usize,
    next_number: u64,
}

impl RecentLogs {
    pub(crate) const fn new() -> RecentLogs {
        RecentLogs(Mutex::new(LogRing { lines: VecDeque::new(), bytes: 0, next_number: 0 }))
    }

    fn push(&self, at: SystemTime, source: &str, kind: &'static str, level: usize, text: &str) {
        let text = text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned();
        let mut ring = self.ring();
        ring.next_number += 1;
        let number = ring.next_number;
        ring.bytes += text.len();
        ring.lines.push_back(LogLine { number, at, source: source.to_owned(), kind, level, text });
        while ring.lines.len() > MAX_LINES || ring.bytes > MAX_BYTES {
            let gone = ring.lines.pop_front();
            ring.bytes -= gone.map_or(0, |it| it.text.len());
        }
    }

    /// Keeps an event of a server, if it is a line of text.
    pub(crate) fn keep(&self, event: &wharf_runtime::Event) {
        let (kind, level, text) = match &event.what {
            EventKind::Stderr(line) => ("stderr", "info", line.as_str()),
            EventKind::Log { level, data, .. } => ("log", level.as_str(), data.as_str()),
            EventKind::Exception(what) => ("exception", "error", what.as_str()),
            _ => return,
        };
        let level = LEVELS.iter().position(|it| *it == level).unwrap_or(1);
        self.push(event.at, &event.source, kind, level, text);
    }

    /// Returns the newest lines that match, the newest first, and whether there are older ones. `before` is the number of
    /// the last line of the previous page.
    pub(crate) fn newest(
        &self,
        before: Option<u64>,
        limit: usize,
        is_meant: impl Fn(&LogLine) -> bool,
    ) -> (Vec<LogLine>, bool) {
        let ring = self.ring();
        let older = |it: &&LogLine| before.is_none_or(|before| it.number < before);
        let mut found: Vec<LogLine> = ring
            .lines
            .iter()
            .rev()
            .filter(older)
            .filter(|it| is_meant(it))
            .take(limit + 1)
            .cloned()
            .collect();
        let has_more = found.len() > limit;
        found.truncate(limit);
        (found, has_more)
    }

    fn ring(&self) -> MutexGuard<'_, LogRing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps wharf's own log lines.
#[derive(Debug)]
pub(super) struct KeepLines(pub(super) &'static RecentLogs);

impl<S: Subscriber> Layer<S> for KeepLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = String::new();
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            let space = if text.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = match field.name() {
                "message" => write!(text, "{space}{value:?}"),
                name => write!(text, "{space}{name}={value:?}"),
            };
        });
        let level = match *event.metadata().level() {
            Level::ERROR => 4,
            Level::WARN => 3,
            Level::INFO => 1,
            Level::DEBUG | Level::TRACE => 0,
        };
        self.0.push(SystemTime::now(), "", "wharf", level, &text);
    }
}
