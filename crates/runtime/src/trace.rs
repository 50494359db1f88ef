//! Where a call stands in a trace that others write down: W3C Trace Context, and no more of it than is passed on.

use std::{fmt::Write, sync::Arc};

/// The place of one span in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Which trace.
    pub id: [u8; 16],
    /// Which span of it.
    pub span: [u8; 8],
    /// The span that it is part of, if it is part of one.
    pub parent: Option<[u8; 8]>,
    /// Whether it is written down.
    pub sampled: bool,
    /// What the systems of the trace say to each other.
    pub state: Option<Arc<str>>,
}

impl Trace {
    /// The span that a `traceparent` names. What is malformed names none.
    pub fn parse(traceparent: &str) -> Option<Trace> {
        let mut parts = traceparent.trim().split('-');
        let version: [u8; 1] = hex(parts.next()?)?;
        let (id, span, flags): ([u8; 16], [u8; 8], [u8; 1]) =
            (hex(parts.next()?)?, hex(parts.next()?)?, hex(parts.next()?)?);
        // Later versions may say more; the first does not.
        let fits = version != [0xff] && (version != [0] || parts.next().is_none());
        let names = id != [0; 16] && span != [0; 8];
        (fits && names).then_some(Trace { id, span, parent: None, sampled: flags[0] & 1 == 1, state: None })
    }

    /// The span, as others are told of it.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-0{}", text(&self.id), text(&self.span), u8::from(self.sampled))
    }
}

/// Lower-case hexadecimal, as everywhere in traces.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
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
    fn only_what_is_well_formed_is_a_parent() {
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
