//! The expected behaviour of our client in each mode: the outcome, its time limit, and the outcome of the next call.
//!
//! Each combination of mode, transport and era is a row. `ours` tries one row; the tests try all of them.

mod over_http;
mod over_sse;
mod over_stdio;
mod over_ws;
mod report_check;

pub use report_check::check_report;

use crate::{
    modes,
    options::{Era, Transport},
};
use std::time::Duration;

/// Maximum memory growth of a trial, in KiB.
pub const MAX_MEMORY_KIB: u64 = 64 << 10;

/// Time limit for an immediate outcome, generous enough for a busy machine.
const IMMEDIATE_LIMIT: Duration = Duration::from_secs(3);

/// Maximum delay of an outcome after its timeout.
const TIMEOUT_TOLERANCE: Duration = Duration::from_secs(2);

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
    pub by: Due,
    /// Expected outcome of the call after it.
    pub next: Next,
    /// Further command-line arguments for the server.
    pub options: &'static [&'static str],
    /// The peer at the address, if it is not the hostile server.
    pub peer: Peer,
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
    BreakerOpen,
}

/// The time at which an outcome is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Immediately.
    Immediately,
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
    BreakerOpens,
}

/// The peer at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The hostile server.
    Hostile,
    /// Nothing: the program or the listener does not exist.
    Missing,
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
        match self.peer {
            Peer::Hostile => {
                let about = self.modes.split(',').filter_map(modes::find).map(|mode| mode.about);
                about.collect::<Vec<_>>().join("; ")
            }
            Peer::Missing if self.transport == Transport::Stdio => "there is no such program".to_owned(),
            Peer::Missing => "nothing listens at its port".to_owned(),
            Peer::Unknown => "its host name does not resolve".to_owned(),
            Peer::Tls => "it does not speak TLS, which its address promises".to_owned(),
            Peer::Full => "its accept queue is full".to_owned(),
        }
    }

    /// Returns the timeout of one call, in seconds.
    pub fn request_timeout(&self) -> u64 {
        match self.by {
            Due::Request(seconds) => seconds,
            Due::Total(_) => 1,
            _ => 30,
        }
    }

    /// Returns the timeout of one call regardless of progress, in seconds.
    pub fn total_timeout(&self) -> u64 {
        match self.by {
            Due::Total(seconds) => seconds,
            _ => 5 * self.request_timeout(),
        }
    }

    /// Returns the connect timeout, in seconds.
    pub fn connect_timeout(&self) -> u64 {
        match self.by {
            Due::Connect(seconds) => seconds,
            _ => 30,
        }
    }

    /// Returns the minimum and maximum time of the outcome.
    pub fn bounds(&self) -> (Duration, Duration) {
        match self.by {
            Due::Immediately => (Duration::ZERO, IMMEDIATE_LIMIT),
            Due::Request(seconds) | Due::Total(seconds) | Due::Connect(seconds) => {
                let due = Duration::from_secs(seconds);
                (due.mul_f64(0.9), due + TIMEOUT_TOLERANCE)
            }
            Due::Within(seconds) => (Duration::ZERO, Duration::from_secs(seconds)),
        }
    }

    /// Returns whether the server misbehaves only once.
    pub fn is_once(&self) -> bool {
        matches!(self.next, Next::Works | Next::Settles)
    }

    const fn by(mut self, by: Due) -> Row {
        self.by = by;
        self
    }

    const fn next(mut self, next: Next) -> Row {
        self.next = next;
        self
    }

    const fn with(mut self, options: &'static [&'static str]) -> Row {
        self.options = options;
        self
    }

    const fn at(mut self, peer: Peer) -> Row {
        self.peer = peer;
        self
    }
}

const fn row(transport: Transport, era: Era, modes: &'static str, class: Class) -> Row {
    Row {
        modes,
        transport,
        era,
        class,
        by: Due::Immediately,
        next: Next::Works,
        options: &[],
        peer: Peer::Hostile,
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
            Class::BreakerOpen => "Open",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn row_ids_are_unique_and_their_modes_exist() {
        let names: BTreeSet<String> = rows().map(Row::id).collect();
        assert_eq!(names.len(), rows().count());
        for row in rows().filter(|row| row.peer == Peer::Hostile) {
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
