//! Logging to stderr, as text or as one JSON document per line.

mod plain;
mod spool;

use crate::cli::{Common, LogFormat};
use plain::Plain;
use spool::Spool;
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
static SPOOL: OnceLock<Option<Spool>> = OnceLock::new();

/// Log level of a command without `-v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogsByDefault {
    /// Errors only, for interactive commands, which report problems themselves.
    Errors,
    /// Warnings, for a server that another program starts and whose log that program keeps.
    Warnings,
    /// Info, for a server.
    Everything,
}

/// Installs the logger.
pub(crate) fn begin(common: &Common, by_default: LogsByDefault) {
    let serving = by_default != LogsByDefault::Errors;
    let level = match (common.quiet, by_default, common.verbose) {
        (true, ..) | (_, LogsByDefault::Errors, 0) => Level::ERROR,
        (_, LogsByDefault::Warnings, 0) => Level::WARN,
        (_, LogsByDefault::Errors | LogsByDefault::Warnings, 1) | (_, LogsByDefault::Everything, 0) => {
            Level::INFO
        }
        (_, LogsByDefault::Errors | LogsByDefault::Warnings, 2) | (_, LogsByDefault::Everything, 1) => {
            Level::DEBUG
        }
        _ => Level::TRACE,
    };
    // Log messages of dependencies are rarely useful to users, so only errors of theirs are shown.
    let ours = Targets::new().with_target("wharf", level).with_default(Level::ERROR);
    // A server must not block on a slow reader of its log. Interactive commands write directly.
    let spool = serving.then(|| SPOOL.get_or_init(Spool::start).clone()).flatten();
    let writer = match spool {
        Some(spool) => BoxMakeWriter::new(spool),
        None => BoxMakeWriter::new(io::stderr),
    };
    let layer = fmt::layer().with_writer(writer).with_span_events(FmtSpan::NONE);
    let layer = match common.log_format {
        LogFormat::Text => {
            let colour = common.color.wanted(io::IsTerminal::is_terminal(&io::stderr()));
            match colour {
                true => layer.with_ansi(true).boxed(),
                false => layer.with_ansi(false).event_format(Plain).boxed(),
            }
        }
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    // Fails only if a logger is already installed.
    let _ = tracing_subscriber::registry().with(layer.with_filter(ours)).try_init();
}

/// Flushes queued lines, within a time limit.
pub(crate) fn end() {
    SPOOL.get().into_iter().flatten().for_each(Spool::finish);
}
