//! Logging to stderr, as text or as one JSON document per line.

mod log_queue;
mod plain;
mod recent_logs;

use crate::cli::{GlobalOptions, LogFormat};
use log_queue::LogQueue;
use plain::PlainFormat;
use recent_logs::KeepLines;
pub(crate) use recent_logs::{LEVELS, LogLine, RecentLogs};
use std::{io, sync::OnceLock};
use tracing::Level;
use tracing_subscriber::{
    Layer,
    filter::Targets,
    fmt::{self, format::FmtSpan, writer::BoxMakeWriter},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// Queue of log lines, if the command is a server.
static LOG_QUEUE: OnceLock<Option<LogQueue>> = OnceLock::new();

/// The latest lines of a server's log and of its MCP servers.
static RECENT_LOGS: RecentLogs = RecentLogs::new();

/// Log level of a command without `-v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultLogLevel {
    /// Errors only, for interactive commands, which report problems themselves.
    Errors,
    /// Warnings, for a server that another program starts and whose log that program keeps.
    Warnings,
    /// Info, for a server.
    Info,
}

/// Installs the logger.
pub(crate) fn install(common: &GlobalOptions, default_level: DefaultLogLevel) {
    let serving = default_level != DefaultLogLevel::Errors;
    let level = match (common.quiet, default_level, common.verbose) {
        (true, ..) | (_, DefaultLogLevel::Errors, 0) => Level::ERROR,
        (_, DefaultLogLevel::Warnings, 0) => Level::WARN,
        (_, DefaultLogLevel::Errors | DefaultLogLevel::Warnings, 1) | (_, DefaultLogLevel::Info, 0) => {
            Level::INFO
        }
        (_, DefaultLogLevel::Errors | DefaultLogLevel::Warnings, 2) | (_, DefaultLogLevel::Info, 1) => {
            Level::DEBUG
        }
        _ => Level::TRACE,
    };
    // Log messages of dependencies are rarely useful to users, so only errors of theirs are shown.
    let ours = Targets::new().with_target("wharf", level).with_default(Level::ERROR);
    // A server must not block on a slow reader of its log. Interactive commands write directly.
    let log_queue = serving.then(|| LOG_QUEUE.get_or_init(LogQueue::start).clone()).flatten();
    let writer = match log_queue {
        Some(log_queue) => BoxMakeWriter::new(log_queue),
        None => BoxMakeWriter::new(io::stderr),
    };
    let layer = fmt::layer().with_writer(writer).with_span_events(FmtSpan::NONE);
    let layer = match common.log_format {
        LogFormat::Text => {
            let colour = common.color.is_enabled(io::IsTerminal::is_terminal(&io::stderr()));
            match colour {
                true => layer.with_ansi(true).boxed(),
                false => layer.with_ansi(false).event_format(PlainFormat).boxed(),
            }
        }
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    // Fails only if a logger is already installed.
    let registry = tracing_subscriber::registry().with(layer.with_filter(ours));
    // A line for each call would only push out the others, and the journal has them.
    let kept =
        Targets::new().with_target("wharf", Level::INFO.min(level)).with_target("wharf::call", Level::ERROR);
    let kept = serving.then(|| KeepLines(&RECENT_LOGS).with_filter(kept.with_default(Level::ERROR)));
    let _ = registry.with(kept).try_init();
}

/// The latest log lines.
pub(crate) fn recent() -> &'static RecentLogs {
    &RECENT_LOGS
}

/// Flushes queued lines, within a time limit.
pub(crate) fn flush() {
    LOG_QUEUE.get().into_iter().flatten().for_each(LogQueue::flush_lines);
}
