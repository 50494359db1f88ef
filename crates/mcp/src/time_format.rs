//! Formats times as RFC 3339 in UTC and durations as ISO 8601.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Formats a time as `2025-12-31T10:30:15Z`, with milliseconds unless they are zero.
pub fn rfc3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date_from_days(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let millis = match since.subsec_millis() {
        0 => String::new(),
        millis => format!(".{millis:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{millis}Z")
}

/// Formats a duration as `PT30S`.
pub fn iso_duration(duration: Duration) -> String {
    let text = format!("{:.3}", duration.as_secs_f64());
    format!("PT{}S", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Converts days since 1970-01-01 to a date. Years start in March internally, so that the leap day is the last day of
/// a year.
fn date_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_rfc3339() {
        let at = |secs: u64, millis: u64| rfc3339(UNIX_EPOCH + Duration::from_millis(secs * 1_000 + millis));
        assert_eq!(at(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399, 5), "2000-02-28T23:59:59.005Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_767_177_015, 0), "2025-12-31T10:30:15Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn durations_are_formatted_without_trailing_zeros() {
        let written = [30_000, 60_000, 1_500, 0].map(|it| iso_duration(Duration::from_millis(it)));
        assert_eq!(written, ["PT30S", "PT60S", "PT1.5S", "PT0S"]);
    }
}
