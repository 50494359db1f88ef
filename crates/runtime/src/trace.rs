//! Parses and formats the W3C Trace Context of a call, as far as it has to be propagated.

use std::{fmt::Write, sync::Arc};

/// One span in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Trace id.
    pub id: [u8; 16],
    /// Span id.
    pub span: [u8; 8],
    /// Id of the parent span, if any.
    pub parent: Option<[u8; 8]>,
    /// Whether the trace is sampled.
    pub sampled: bool,
    /// The `tracestate` of the trace.
    pub state: Option<Arc<str>>,
}

impl Trace {
    /// Parses a `traceparent`. Returns `None` if it is malformed.
    pub fn parse(traceparent: &str) -> Option<Trace> {
        let mut parts = traceparent.trim().split('-');
        let version: [u8; 1] = parse_hex(parts.next()?)?;
        let (id, span, flags): ([u8; 16], [u8; 8], [u8; 1]) =
            (parse_hex(parts.next()?)?, parse_hex(parts.next()?)?, parse_hex(parts.next()?)?);
        // Later versions may have more fields; version 00 may not.
        let fits = version != [0xff] && (version != [0] || parts.next().is_none());
        let has_ids = id != [0; 16] && span != [0; 8];
        (fits && has_ids).then_some(Trace { id, span, parent: None, sampled: flags[0] & 1 == 1, state: None })
    }

    /// Formats the span as a `traceparent`.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-0{}", to_hex(&self.id), to_hex(&self.span), u8::from(self.sampled))
    }
}

/// Formats bytes as lower-case hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
    if text.len() != N * 2 || !text.bytes().all(is_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_traceparent_is_rejected() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = Trace::parse(good).expect("a parent");
        assert_eq!((trace.traceparent().as_str(), trace.sampled), (good, true));
        for (traceparent, sampled) in [
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", Some(false)),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03", Some(true)),
            ("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", Some(true)),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", None),
            ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", None),
            ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", None),
            (
                "00-\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}-00f067aa0ba902b7-01",
                None,
            ),
            ("", None),
        ] {
            assert_eq!(Trace::parse(traceparent).map(|it| it.sampled), sampled, "{traceparent}");
        }
    }
}
