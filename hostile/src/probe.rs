//! What a trial of one row needs, whichever client is tried: the far end, a measure of memory, a look at what is left
//! running, and the line that says how it went.

mod far_end;
mod processes;

pub use far_end::{Far, Setting};
pub use processes::{Mark, grown_kib, peak_kib};
use serde::{Deserialize, Serialize};

/// How a trial went, as one line of JSON.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Report {
    /// The row.
    pub row: String,
    /// `OK`, `TE`, `Conn`, `Time`, `Proto`, `NF`; of the other client `OK`, `error`, `hang`.
    pub class: String,
    /// What was said about it.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// How far things had got.
    pub phase: String,
    /// Whether the request reached the server.
    pub sent: String,
    /// How long it took.
    pub ms: u64,
    /// By how much the most memory ever used grew.
    pub grown_kib: u64,
    /// How a source that has nothing to do with it fared meanwhile: `OK`, or what went wrong.
    pub neighbour: String,
    /// The slowest call of that source.
    pub neighbour_ms: u64,
    /// The class of the next call.
    pub next: String,
    /// What was said about that.
    pub next_message: String,
    /// How many processes of the server were left two seconds after the end.
    pub leftovers: usize,
    /// How often the server did what the first call asked for.
    pub executions: usize,
    /// The text that came back.
    pub said: String,
}
