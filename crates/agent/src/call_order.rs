//! Orders the calls of an answer: which may run at the same time.
//!
//! A call that may write waits for the earlier calls to the same source, and later ones wait for it. All others run
//! together, up to a limit.

/// Progress of one call, as the order needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallProgress {
    /// Not started.
    Waiting,
    /// Started.
    Running,
    /// Ended, or not to be made.
    Settled,
}

/// One call, as the order needs it.
#[derive(Clone, Debug)]
pub(crate) struct OrderedCall<'a> {
    pub(crate) source: &'a str,
    pub(crate) may_write: bool,
    pub(crate) progress: CallProgress,
}

/// Returns the positions of the calls that may start now.
pub(crate) fn startable(calls: &[OrderedCall<'_>], max_parallel: usize) -> Vec<usize> {
    let running = calls.iter().filter(|it| it.progress == CallProgress::Running).count();
    let is_free = |at: usize| {
        let call = &calls[at];
        let is_before = |earlier: &&OrderedCall<'_>| {
            earlier.source == call.source
                && earlier.progress != CallProgress::Settled
                && (earlier.may_write || call.may_write)
        };
        call.progress == CallProgress::Waiting && !calls[..at].iter().any(|it| is_before(&it))
    };
    (0..calls.len()).filter(|at| is_free(*at)).take(max_parallel.saturating_sub(running)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_wait_for_earlier_calls_of_their_source() {
        // Source, `w` for a write, progress; then the calls that may start.
        let rows = [
            ("a- a- b-", 8, vec![0, 1, 2]),
            ("a- a- b-", 2, vec![0, 1]),
            ("a-r a- b-", 2, vec![1]),
            ("aw a- b-", 8, vec![0, 2]),
            ("a- aw a-", 8, vec![0]),
            ("a-r aw b-", 8, vec![2]),
            ("a-s aw a-", 8, vec![1]),
            ("a-s aws a-", 8, vec![2]),
            ("aw aw bw", 8, vec![0, 2]),
            ("", 8, vec![]),
        ];
        for (calls, max_parallel, expected) in rows {
            let calls: Vec<OrderedCall<'_>> = calls
                .split_whitespace()
                .map(|it| OrderedCall {
                    source: &it[..1],
                    may_write: it[1..].starts_with('w'),
                    progress: match &it[2..] {
                        "r" => CallProgress::Running,
                        "s" => CallProgress::Settled,
                        _ => CallProgress::Waiting,
                    },
                })
                .collect();
            assert_eq!(startable(&calls, max_parallel), expected, "{calls:?}");
        }
    }
}
