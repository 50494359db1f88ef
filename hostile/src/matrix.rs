//! The expected behaviour of our client in each mode: the outcome, its time limit, and the outcome of the next call.
//!
//! Each combination of mode, transport and era is a row. `ours` tries one row; the tests try all of them.

mod judgement;
mod over_http;
mod over_sse;
mod over_stdio;
mod over_ws;

pub use judgement::judge;

use crate::{
    modes,
    orders::{Era, Transport},
};
use std::time::Duration;

/// Maximum memory growth of a trial, in KiB.
pub const MEMORY: u64 = 64 << 10;

/// Time limit for an immediate outcome, generous enough for a busy machine.
const SOON: Duration = Duration::from_secs(3);

/// Maximum delay of an outcome after its timeout.
const LATE: Duration = Duration::from_secs(2);

/// One row: a server configuration and the expected outcome.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Modes of the server, separated by commas.
    pub modes: &'static str,
    /// Transport.
    pub transport: Transport,
    /// Protocol era of the server.
    pub era: Era,
    /// Expected outcome of the first call.
    pub class: Class,
    /// Expected time of that outcome.
    pub by: By,
    /// Expected outcome of the call after it.
    pub next: Next,
    /// Further command-line arguments for the server.
    pub orders: &'static [&'static str],
    /// The peer at the address, if it is not the hostile server.
    pub far_end: FarEnd,
}

/// Kinds of outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The call succeeded.
    Ok,
    /// The tool reported an error.
    ToolError,
    /// The server could not be reached, or disconnected.
    Connection,
    /// The timeout expired.
    Timeout,
    /// The server violated the protocol.
    Protocol,
    /// The tool does not exist.
    NotFound,
    /// The circuit breaker is open.
    Resting,
}

/// The time at which an outcome is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Immediately.
    Soon,
    /// When the request timeout expires, after this many seconds.
    Request(u64),
    /// When the total timeout expires, which progress does not extend, after this many seconds.
    Total(u64),
    /// When the connect timeout expires, after this many seconds.
    Connect(u64),
    /// Within this many seconds, because there is much data to read or something to wait for.
    Within(u64),
}

/// Expected outcome of the call after the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The server behaves again and the call succeeds.
    Works,
    /// The call may still fail on the broken connection; the call after it succeeds.
    Settles,
    /// The server repeats the fault, and the outcome is the same.
    Same,
    /// The server repeats the fault until the circuit breaker opens and calls fail at once.
    Rests,
}

/// The peer at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// The hostile server.
    Hostile,
    /// Nothing: the program or the listener does not exist.
    Nobody,
    /// A host name that does not resolve.
    Unknown,
    /// The hostile server behind a TLS address, although it does not speak TLS.
    Tls,
    /// A port whose accept queue is full.
    Full,
}

/// Returns all rows, transport by transport.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let tables: [&'static [Row]; 4] = [over_stdio::ROWS, over_http::ROWS, over_sse::ROWS, over_ws::ROWS];
    tables.into_iter().flatten()
}

/// Finds a row by its id.
pub fn find(id: &str) -> Option<&'static Row> {
    rows().find(|row| row.id() == id)
}

impl Row {
    /// Returns the id of the row.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.modes, self.transport.as_str(), self.era.as_str())
    }

    /// Describes the fault in a few words.
    pub fn about(&self) -> String {
        match self.far_end {
            FarEnd::Hostile => {
                let about = self.modes.split(',').filter_map(modes::find).map(|mode| mode.about);
                about.collect::<Vec<_>>().join("; ")
            }
            FarEnd::Nobody if self.transport == Transport::Stdio => "there is no such program".to_owned(),
            FarEnd::Nobody => "nothing listens at its port".to_owned(),
            FarEnd::Unknown => "its name is not known".to_owned(),
            FarEnd::Tls => "it does not speak TLS, which its address promises".to_owned(),
            FarEnd::Full => "it takes no more connections".to_owned(),
        }
    }

    /// Returns the timeout of one call, in seconds.
    pub fn request_timeout(&self) -> u64 {
        match self.by {
            By::Request(seconds) => seconds,
            By::Total(_) => 1,
            _ => 30,
        }
    }

    /// Returns the timeout of one call regardless of progress, in seconds.
    pub fn total_timeout(&self) -> u64 {
        match self.by {
            By::Total(seconds) => seconds,
            _ => 5 * self.request_timeout(),
        }
    }

    /// Returns the connect timeout, in seconds.
    pub fn connect_timeout(&self) -> u64 {
        match self.by {
            By::Connect(seconds) => seconds,
            _ => 30,
        }
    }

    /// Returns the minimum and maximum time of the outcome.
    pub fn bounds(&self) -> (Duration, Duration) {
        match self.by {
            By::Soon => (Duration::ZERO, SOON),
            By::Request(seconds) | By::Total(seconds) | By::Connect(seconds) => {
                let due = Duration::from_secs(seconds);
                (due.mul_f64(0.9), due + LATE)
            }
            By::Within(seconds) => (Duration::ZERO, Duration::from_secs(seconds)),
        }
    }

    /// Returns whether the server misbehaves only once.
    pub fn once(&self) -> bool {
        matches!(self.next, Next::Works | Next::Settles)
    }

    const fn by(mut self, by: By) -> Row {
        self.by = by;
        self
    }

    const fn next(mut self, next: Next) -> Row {
        self.next = next;
        self
    }

    const fn with(mut self, orders: &'static [&'static str]) -> Row {
        self.orders = orders;
        self
    }

    const fn at(mut self, far_end: FarEnd) -> Row {
        self.far_end = far_end;
        self
    }
}

const fn row(transport: Transport, era: Era, modes: &'static str, class: Class) -> Row {
    Row {
        modes,
        transport,
        era,
        class,
        by: By::Soon,
        next: Next::Works,
        orders: &[],
        far_end: FarEnd::Hostile,
    }
}

impl Class {
    /// Returns the short name used in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Ok => "OK",
            Class::ToolError => "TE",
            Class::Connection => "Conn",
            Class::Timeout => "Time",
            Class::Protocol => "Proto",
            Class::NotFound => "NF",
            Class::Resting => "Rest",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_rows_have_the_same_name_and_each_names_modes_that_there_are() {
        let names: BTreeSet<String> = rows().map(Row::id).collect();
        assert_eq!(names.len(), rows().count());
        for row in rows().filter(|row| row.far_end == FarEnd::Hostile) {
            assert!(row.modes.split(',').all(|mode| modes::find(mode).is_some()), "{}", row.id());
        }
    }

    #[test]
    fn every_mode_has_a_row() {
        let tried: BTreeSet<&str> = rows().flat_map(|row| row.modes.split(',')).collect();
        // These two are random and belong to the soak test.
        let left_out = ["die_random", "rst_random"];
        let missing = modes::all().map(|mode| mode.name).filter(|name| !tried.contains(name));
        assert_eq!(missing.collect::<Vec<_>>(), left_out);
    }
}
