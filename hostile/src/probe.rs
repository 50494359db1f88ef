//! Shared parts of a trial, for either client: the peer, a memory measurement, a search for leftover processes, and
//! the report.

mod peer;
mod processes;

pub use peer::{PeerGuard, TrialSetup};
pub use processes::{Mark, grown_kib, peak_kib};
use serde::{Deserialize, Serialize};

/// Report of one trial, printed as one line of JSON.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Report {
    /// Id of the row.
    pub row: String,
    /// Outcome: `OK`, `TE`, `Conn`, `Time`, `Proto`, `NF` or `Open`; for the other client `OK`, `error` or `hang`.
    pub class: String,
    /// Error message.
    pub message: String,
    /// Hint on how to fix it.
    pub hint: String,
    /// Phase in which the call failed.
    pub phase: String,
    /// Whether the request was sent to the server.
    pub sent: String,
    /// Duration in milliseconds.
    pub ms: u64,
    /// Growth of peak memory, in KiB.
    pub grown_kib: u64,
    /// Outcome of calls to an unrelated source at the same time: `OK`, or an error.
    pub neighbour: String,
    /// Duration of the slowest of those calls, in milliseconds.
    pub neighbour_ms: u64,
    /// Outcome of the next call.
    pub next: String,
    /// Error message of the next call.
    pub next_message: String,
    /// Number of server processes that still existed two seconds after the end.
    pub leftovers: usize,
    /// Number of times the server executed the first call.
    pub executions: usize,
    /// Text of the result.
    pub said: String,
}
