//! Durations in buckets that grow by a constant factor. Only buckets with calls take space.

use std::time::Duration;

/// Factor between the bounds of neighbouring buckets. A value is reported as the middle of its bucket, so it is wrong by
/// at most 7 %.
const GROWTH: f64 = 1.15;

/// Upper bound of the first bucket, in milliseconds.
const FIRST_BOUND_MS: f64 = 0.05;

/// Index of the last bucket, which also counts everything above it (more than 2 hours).
const LAST_BUCKET: u8 = 135;

/// Number of calls by duration.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Bucket and count, in the order of the buckets.
    buckets: Vec<(u8, u32)>,
}

impl Histogram {
    pub(super) fn add(&mut self, duration: Duration) {
        self.add_to(bucket(duration.as_secs_f64() * 1_000.0), 1);
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        other.buckets.iter().for_each(|(bucket, count)| self.add_to(*bucket, *count));
    }

    fn add_to(&mut self, bucket: u8, count: u32) {
        match self.buckets.binary_search_by_key(&bucket, |(it, _)| *it) {
            Ok(place) => self.buckets[place].1 = self.buckets[place].1.saturating_add(count),
            Err(place) => self.buckets.insert(place, (bucket, count)),
        }
    }

    /// Returns the duration in milliseconds that this share of the calls does not exceed; `None` without calls.
    pub(super) fn percentile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.buckets.iter().map(|(_, count)| u64::from(*count)).sum();
        let wanted = (share * all as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            seen += u64::from(*count);
            seen >= wanted
        });
        found.map(|(bucket, _)| middle(*bucket))
    }
}

fn bucket(milliseconds: f64) -> u8 {
    let steps = (milliseconds / FIRST_BOUND_MS).max(1.0).ln() / GROWTH.ln();
    steps.ceil().min(f64::from(LAST_BUCKET)) as u8
}

/// The geometric middle of a bucket, in milliseconds.
fn middle(bucket: u8) -> f64 {
    FIRST_BOUND_MS * GROWTH.powf(f64::from(bucket) - 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_wrong_by_at_most_a_tenth() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|it| histogram.add(Duration::from_micros(it * 100)));
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            let found: f64 = histogram.percentile(share).expect("a duration");
            assert!((found / expected - 1.0).abs() < 0.1, "{share}: {found}");
        }
        assert_eq!(Histogram::default().percentile(0.5), None);
    }

    #[test]
    fn every_duration_has_a_bucket() {
        for milliseconds in [0.0, 0.001, 0.05, 1.0, 1_000.0, 7_200_000.0, f64::MAX] {
            assert!(bucket(milliseconds) <= LAST_BUCKET, "{milliseconds}");
        }
    }
}
