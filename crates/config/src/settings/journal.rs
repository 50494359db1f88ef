//! Loads `[journal]` of wharf.toml: the retention time and maximum size of the journal.

use crate::{
    diagnostic::Diagnostics,
    raw::{Field, RawJournal},
    read::Reader,
};
use std::time::Duration;

/// Limits of the journal. The default of an unset limit depends on the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSettings {
    /// Retention time of a call record.
    pub keep: Option<Limit<Duration>>,
    /// Maximum size of the journal, in bytes.
    pub max_bytes: Option<Limit<u64>>,
}

/// A limit that the operator can set or switch off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit<T> {
    /// The operator explicitly disabled the limit.
    Unlimited,
    /// The limit is this value.
    At(T),
}

const UNLIMITED: &str = "unlimited";

const TIMES: [(&str, u64); 5] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400), ("w", 604_800)];

const SIZES: [(&str, u64); 9] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Reads `[journal]`. `None` means that a diagnostic was recorded.
pub(super) fn journal(field: Option<Field>, diagnostics: &mut Diagnostics) -> Option<JournalSettings> {
    let Some(field) = field else { return Some(JournalSettings::default()) };
    let RawJournal { keep, max_bytes } = RawJournal::read(field.node, diagnostics)?;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let sizes = "a size such as \"1GiB\" or \"500MiB\", or \"unlimited\"";
    let keep = retention(&mut reader, "keep", keep);
    let max_bytes = reader.parsed("max_bytes", max_bytes, sizes, |it| limit(it, &SIZES, |it| it));
    Some(JournalSettings { keep, max_bytes })
}

/// Reads a retention time.
pub(super) fn retention(reader: &mut Reader<'_>, key: &str, field: Option<Field>) -> Option<Limit<Duration>> {
    let times = "a time such as \"30d\", \"12h\" or \"90m\", or \"unlimited\"";
    reader.parsed(key, field, times, |it| limit(it, &TIMES, Duration::from_secs))
}

/// Parses a positive integer with its unit, or `unlimited`.
fn limit<T>(text: &str, units: &[(&str, u64)], of: fn(u64) -> T) -> Option<Limit<T>> {
    if text == UNLIMITED {
        return Some(Limit::Unlimited);
    }
    let (number, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len()));
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let amount = number.parse::<u64>().ok()?.checked_mul(*factor)?;
    (amount > 0).then(|| Limit::At(of(amount)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_with_its_unit() {
        for (text, expected) in [
            ("90s", Some(90)),
            ("12h", Some(43_200)),
            ("30d", Some(2_592_000)),
            ("2 w", Some(1_209_600)),
            ("30", None),
            ("0d", None),
            ("-1d", None),
            ("d", None),
            ("1y", None),
            ("99999999999999999d", None),
        ] {
            assert_eq!(limit(text, &TIMES, |it| it), expected.map(Limit::At), "{text}");
        }
        for (text, expected) in
            [("1GiB", Some(1 << 30)), ("500 MB", Some(500_000_000)), ("4096", Some(4_096)), ("1gib", None)]
        {
            assert_eq!(limit(text, &SIZES, |it| it), expected.map(Limit::At), "{text}");
        }
        assert_eq!(limit("unlimited", &SIZES, |it| it), Some(Limit::Unlimited));
    }
}
