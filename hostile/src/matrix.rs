//! What our client has to make of each mode: which kind of outcome, how soon, and what comes after it.
//!
//! A mode on another transport or in another era is a row of its own. The rows are data; `ours` tries one of them, and
//! the tests try all.

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

/// How much memory a row may cost, in KiB.
pub const MEMORY: u64 = 64 << 10;

/// How soon is soon, on a machine that has other things to do.
const SOON: Duration = Duration::from_secs(3);

/// How much later than its timeout a call may come back.
const LATE: Duration = Duration::from_secs(2);

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The modes that the server is in, with commas between.
    pub modes: &'static str,
    /// How it is spoken to.
    pub transport: Transport,
    /// What it speaks.
    pub era: Era,
    /// How a call of its tool has to end.
    pub class: Class,
    /// When.
    pub by: By,
    /// What the call after it has to come to.
    pub next: Next,
    /// What else the server is told.
    pub orders: &'static [&'static str],
    /// What is at the address, where it is not the server.
    pub far_end: FarEnd,
}

/// The kinds of outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An answer.
    Ok,
    /// The tool says that it failed.
    ToolError,
    /// The server could not be reached, or went away.
    Connection,
    /// There was no answer in time.
    Timeout,
    /// The server broke the protocol.
    Protocol,
    /// There is no such tool.
    NotFound,
    /// The source rests after too many failures.
    Resting,
}

/// When an outcome is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// At once.
    Soon,
    /// When a request has taken too long, which is after this many seconds.
    Request(u64),
    /// When a request has taken too long in spite of all its progress, which is after this many seconds.
    Total(u64),
    /// When connecting has taken too long, which is after this many seconds.
    Connect(u64),
    /// Within so many seconds, because there is much to be read, or waited for.
    Within(u64),
}

/// What the call after the fault comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The server behaves again, and the call works.
    Works,
    /// The call works, unless it meets the end of the connection that the fault has spoiled; the one after it works.
    Settles,
    /// The server does it again, and the outcome is the same.
    Same,
    /// The server does it again, and again, until the source rests and calls fail at once.
    Rests,
}

/// What is at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// The server.
    Hostile,
    /// Nothing: no such program, no such port.
    Nobody,
    /// A name that nobody has.
    Unknown,
    /// The server, which does not expect TLS.
    Tls,
    /// A port that takes no more connections.
    Full,
}

/// All rows, in the order of the tables.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let tables: [&'static [Row]; 4] = [over_stdio::ROWS, over_http::ROWS, over_sse::ROWS, over_ws::ROWS];
    tables.into_iter().flatten()
}

/// One row by its name.
pub fn find(id: &str) -> Option<&'static Row> {
    rows().find(|row| row.id() == id)
}

impl Row {
    /// What the row is called.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.modes, self.transport.as_str(), self.era.as_str())
    }

    /// What the server does, in a few words.
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

    /// Whole seconds for one call.
    pub fn request_timeout(&self) -> u64 {
        match self.by {
            By::Request(seconds) => seconds,
            By::Total(_) => 1,
            _ => 30,
        }
    }

    /// Whole seconds for one call, however much progress it reports.
    pub fn total_timeout(&self) -> u64 {
        match self.by {
            By::Total(seconds) => seconds,
            _ => 5 * self.request_timeout(),
        }
    }

    /// Whole seconds to be ready.
    pub fn connect_timeout(&self) -> u64 {
        match self.by {
            By::Connect(seconds) => seconds,
            _ => 30,
        }
    }

    /// The least and the most time that the outcome may take.
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

    /// Whether the server does it only once.
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
    /// Its short name.
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
        // These two are for long runs with chance in them.
        let left_out = ["die_random", "rst_random"];
        let missing = modes::all().map(|mode| mode.name).filter(|name| !tried.contains(name));
        assert_eq!(missing.collect::<Vec<_>>(), left_out);
    }
}
