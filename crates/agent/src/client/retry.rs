//! Decides whether and when a question is asked again.

use crate::model::trouble::Trouble;
use std::time::Duration;

/// Maximum number of further tries.
pub(super) const MAX_RETRIES: u32 = 3;
/// Longest wait that a provider may ask for. A longer one ends the question.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Wait before the first retry. It doubles with each one.
pub(super) const FIRST_DELAY: Duration = Duration::from_secs(1);

/// Returns how long to wait before the next try, or `None` if there is none. `retries` counts those before, `first` is
/// the delay of the first one, and `jitter` a random number from 0 to 1.
pub(super) fn retry_delay(trouble: &Trouble, retries: u32, first: Duration, jitter: f64) -> Option<Duration> {
    if retries >= MAX_RETRIES || !trouble.is_retryable() {
        return None;
    }
    match trouble.retry_after() {
        Some(wait) => (wait <= MAX_RETRY_AFTER).then_some(wait),
        None => Some((first * 2_u32.pow(retries)).mul_f64(0.8 + 0.4 * jitter)),
    }
}

/// Reads `retry-after-ms` or `Retry-After`, if it is a number.
pub(super) fn read_retry_after(header: impl Fn(&str) -> Option<String>) -> Option<Duration> {
    let number = |name: &str| header(name)?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|it| it / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trouble::ProviderError;

    #[test]
    fn delays_double_and_end_after_three_retries() {
        let delay = |retries, jitter| {
            retry_delay(&Trouble::Cut, retries, FIRST_DELAY, jitter).map(|it| it.as_millis())
        };
        assert_eq!([delay(0, 0.5), delay(1, 0.5), delay(2, 0.5)], [Some(1000), Some(2000), Some(4000)]);
        assert_eq!((delay(0, 0.0), delay(0, 1.0), delay(3, 0.5)), (Some(800), Some(1200), None));
        let limit = Trouble::TooMuch { what: "parts", limit: 1 };
        assert_eq!(retry_delay(&limit, 0, FIRST_DELAY, 0.5), None);
    }

    #[test]
    fn a_provider_decides_the_delay_up_to_a_minute() {
        let delay = |seconds| {
            let error = ProviderError::from_response(429, b"").with_retry_after(seconds);
            retry_delay(&error.into(), 0, FIRST_DELAY, 0.5)
        };
        let seconds = Duration::from_secs;
        assert_eq!(delay(Some(seconds(0))), Some(seconds(0)));
        assert_eq!(delay(Some(seconds(60))), Some(seconds(60)));
        assert_eq!(delay(Some(seconds(61))), None);
        assert_eq!(delay(None), Some(seconds(1)));
    }

    #[test]
    fn milliseconds_win_and_dates_are_ignored() {
        let read = |headers: &[(&str, &str)]| {
            let found =
                |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, it)| (*it).to_owned());
            read_retry_after(found)
        };
        let both = [("retry-after", "7"), ("retry-after-ms", "250")];
        assert_eq!(read(&both), Some(Duration::from_millis(250)));
        assert_eq!(read(&both[..1]), Some(Duration::from_secs(7)));
        assert_eq!(read(&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")]), None);
        assert_eq!(read(&[("retry-after", "-1")]), None);
    }
}
