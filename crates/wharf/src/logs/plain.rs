//! Formats log lines as text without colour, in the default format of `tracing` but faster. A server logs every call,
//! so the cost of a line is part of the cost of a call.

use std::{
    cell::RefCell,
    fmt::{self, Debug, Write},
    time::{SystemTime, UNIX_EPOCH},
};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};
use wharf_runtime::time_format::rfc3339;

/// Formats an event as one line.
pub(super) struct PlainFormat;

thread_local! {
    /// The last formatted second, and its text without the fraction.
    static LAST_SECOND: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

impl<S, N> FormatEvent<S, N> for PlainFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        write_time(&mut out, SystemTime::now())?;
        out.write_str(match *event.metadata().level() {
            Level::ERROR => " ERROR ",
            Level::WARN => "  WARN ",
            Level::INFO => "  INFO ",
            Level::DEBUG => " DEBUG ",
            Level::TRACE => " TRACE ",
        })?;
        out.write_str(event.metadata().target())?;
        out.write_str(":")?;
        let mut fields = FieldWriter { out: &mut out, written: Ok(()) };
        event.record(&mut fields);
        fields.written?;
        out.write_char('\n')
    }
}

/// Writes the time with microseconds. The text up to the second is cached.
fn write_time(out: &mut impl Write, now: SystemTime) -> fmt::Result {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST_SECOND.with_borrow_mut(|(second, text)| {
        if *second != since.as_secs() || text.is_empty() {
            let whole = rfc3339(UNIX_EPOCH + std::time::Duration::from_secs(since.as_secs()));
            *second = since.as_secs();
            *text = whole.split(['.', 'Z']).next().unwrap_or_default().to_owned();
        }
        out.write_str(text)
    })?;
    write!(out, ".{:06}Z", since.subsec_micros())
}

/// Writes the fields of an event, and keeps the first error.
struct FieldWriter<'a, W> {
    out: &'a mut W,
    written: fmt::Result,
}

impl<W: Write> FieldWriter<'_, W> {
    fn write(&mut self, field: &Field, write: impl FnOnce(&mut W) -> fmt::Result) {
        if self.written.is_err() {
            return;
        }
        let name = field.name();
        self.written = self.out.write_char(' ').and_then(|()| match name {
            "message" => Ok(()),
            _ => self.out.write_str(name).and_then(|()| self.out.write_char('=')),
        });
        if self.written.is_ok() {
            self.written = write(self.out);
        }
    }
}

impl<W: Write> Visit for FieldWriter<'_, W> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.write(field, |out| match field.name() {
            // Escapes control characters, so that untrusted text cannot send escape sequences to the terminal.
            "message" => ControlEscaper(out).write_fmt(format_args!("{value:?}")),
            _ => write!(out, "{value:?}"),
        });
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // `fold` reads every byte, but several at a time; `all` stops early, and reads one at a time.
        let plain = value
            .bytes()
            .fold(true, |plain, it| plain & (b' '..=b'~').contains(&it) & (it != b'"') & (it != b'\\'));
        self.write(field, |out| match plain {
            true => {
                out.write_char('"').and_then(|()| out.write_str(value)).and_then(|()| out.write_char('"'))
            }
            false => write!(out, "{value:?}"),
        });
    }
}

/// Escapes control characters except line feeds and tabs.
struct ControlEscaper<'a, W>(&'a mut W);

impl<W: Write> Write for ControlEscaper<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_escaped = |it: char| it.is_control() && it != '\n' && it != '\t';
        let is_plain = text.bytes().fold(true, |plain, it| plain & (b' '..=b'~').contains(&it));
        if is_plain || !text.contains(is_escaped) {
            return self.0.write_str(text);
        }
        text.chars().try_for_each(|it| match is_escaped(it) {
            true => write!(self.0, "{}", it.escape_default()),
            false => self.0.write_char(it),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io,
        sync::{Arc, Mutex},
        time::Duration,
    };
    use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt};

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panicked").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for SharedBuffer {
        type Writer = SharedBuffer;

        fn make_writer(&self) -> SharedBuffer {
            self.clone()
        }
    }

    /// Everything after time and level is the same as the output of `tracing`.
    #[test]
    fn lines_match_the_default_format() {
        let say = || {
            let (tool, error) = ("create\n\u{1b}[31mtodo\"", Some("no \\ good".to_owned()));
            tracing::info!(target: "wharf::call", request_id = "0190-ab", duration = 0.25, "it is {}", "over");
            tracing::warn!(target: "wharf::call", tool, error, count = 3_u64, well = false, "odd");
        };
        let lines = |layer: &dyn Fn(SharedBuffer) -> tracing::Dispatch| {
            let buffer = SharedBuffer::default();
            tracing::dispatcher::with_default(&layer(buffer.clone()), say);
            let text = String::from_utf8(buffer.0.lock().expect("nobody panicked").clone()).expect("UTF-8");
            text.lines().map(|it| it[27..].to_owned()).collect::<Vec<_>>()
        };
        let ours = lines(&|buffer| {
            let layer = tracing_subscriber::fmt::layer()
                .with_writer(buffer)
                .with_ansi(false)
                .event_format(PlainFormat);
            tracing_subscriber::registry().with(layer).into()
        });
        let theirs = lines(&|buffer| {
            let layer = tracing_subscriber::fmt::layer().with_writer(buffer).with_ansi(false);
            tracing_subscriber::registry().with(layer).into()
        });
        assert_eq!(ours, theirs);
        assert_eq!(ours.len(), 2, "{ours:?}");
    }

    #[test]
    fn time_has_microseconds() {
        let mut text = String::new();
        for micros in [1_700_000_000_000_001, 1_700_000_000_999_999, 1_700_000_001_000_000] {
            write_time(&mut text, UNIX_EPOCH + Duration::from_micros(micros))
                .expect("a string takes everything");
            text.push(' ');
        }
        let expected = "2023-11-14T22:13:20.000001Z 2023-11-14T22:13:20.999999Z 2023-11-14T22:13:21.000000Z ";
        assert_eq!(text, expected);
    }
}
