//! Generates ids for calls without a request id: version 7 UUIDs, which sort by time.
//!
//! Reads random bytes once per process and counts up from there, because a random read per call would cost more than
//! much of the call itself.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use uuid::{Builder, Uuid};

/// The counter, with a random start, and two random bytes shared by all ids of this process.
static COUNTER_AND_RANDOM: LazyLock<(AtomicU64, [u8; 2])> = LazyLock::new(|| {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    let [.., one, two] = high.to_be_bytes();
    // Halves the start value to leave room before the counter wraps around.
    (AtomicU64::new(low >> 1), [one, two])
});

/// Returns a unique id.
pub(super) fn next(now: SystemTime) -> Arc<str> {
    let (count, common) = &*COUNTER_AND_RANDOM;
    let [a, b, c, d, e, f, g, h] = count.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let millis = now.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_millis());
    let bytes = [common[0], common[1], a, b, c, d, e, f, g, h];
    let id =
        Builder::from_unix_timestamp_millis(u64::try_from(millis).unwrap_or(u64::MAX), &bytes).into_uuid();
    Arc::from(&*id.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashSet, time::Duration};

    #[test]
    fn ids_are_unique_and_sort_by_time() {
        let now = SystemTime::now();
        let ids: HashSet<Arc<str>> = (0..10_000).map(|_| next(now)).collect();
        assert_eq!(ids.len(), 10_000);
        let later = next(now + Duration::from_millis(1));
        assert!(ids.iter().all(|it| **it < *later));
        let version = Uuid::parse_str(&later).map(|it| it.get_version_num());
        assert_eq!(version, Ok(7), "{later}");
    }
}
