//! Generates `docs/hostile.md`: the matrix, and the results of our client and of another client.
//!
//! The page is written from a real run. Rows and expected outcomes follow from the matrix, so a test can detect an
//! outdated page. Times and memory are rounded so that another run gives the same values.

use crate::{
    matrix::{Class, Due, MAX_MEMORY_KIB, Next, Row, rows},
    options::Transport,
    probe::Report,
};
use std::{collections::HashMap, fmt::Write};

/// Memory growth in KiB above which the page calls it unbounded.
const UNBOUNDED_KIB: u64 = 4 * MAX_MEMORY_KIB;

/// Reports of one client, by row id.
pub type Reports = HashMap<String, Report>;

/// Generates the page.
pub fn page(ours: &Reports, theirs: &Reports) -> String {
    let mut page = String::from(INTRODUCTION);
    summary(&mut page, theirs);
    for (transport, title) in SECTIONS {
        let _ = write!(page, "\n## {title}\n\n{HEAD}");
        for row in rows().filter(|row| row.transport == transport) {
            let id = row.id();
            let ours = ours.get(&id).map(|it| (took(row, it.ms), memory(it.grown_kib))).unwrap_or_default();
            let theirs = theirs.get(&id).map_or_else(|| "–".to_owned(), outcome);
            let _ = writeln!(page, "{} {} | {} | {} | {theirs} |", stem(row), ours.0, ours.1, next(row));
        }
    }
    page
}

/// Generates the beginning of a table line, which depends only on the matrix.
pub fn stem(row: &Row) -> String {
    let (mode, era, about) = (row.modes.replace(',', "`, `"), row.era.as_str(), row.about());
    format!("| `{mode}` | {era} | {about} | {}{} |", row.class.as_str(), when(row))
}

const SECTIONS: [(Transport, &str); 4] = [
    (Transport::Stdio, "Child processes (stdio)"),
    (Transport::Http, "Streamable HTTP"),
    (Transport::Sse, "HTTP with server-sent events (2024-11-05)"),
    (Transport::Ws, "WebSocket"),
];

const HEAD: &str = "\
| mode | server | what it does | wharf | took | memory | next call | rmcp 3.8.0 |
| --- | --- | --- | --- | --- | --- | --- | --- |
";

const INTRODUCTION: &str = "\
# Hostile servers

How wharf handles servers that misbehave. The server is `hostile/`, made of raw bytes and without any MCP library;
each row below is a mode of it, tried as a user would: a source in an agent file, one call of its tool while a good
source is called beside it, one call after it, and a look at what is left running. `cargo test -p hostile` tries every
row; `UPDATE=1 cargo test -p hostile` tries them with the plain client of the reference SDK too and writes this page.

What is asserted for every row: the class, the time (*soon* is under three seconds on a busy machine with two cores, a
timeout comes when it is due), at most 64 MiB more memory than before at any moment, a neighbour that notices nothing,
a next call that comes out as said, no process left two seconds after the end, and a failure that says why.

| class | what the caller gets |
| --- | --- |
| OK | the answer |
| TE | the tool's own error |
| Conn | `MCPConnectionError`: not reached, or gone |
| Time | `MCPTimeoutError`, at the time that was configured |
| Proto | `MCPProtocolError`: the server broke the protocol or a limit |
| NF | `MCPToolNotFoundError` |
| Open | `MCPConnectionError` at once: the circuit breaker is open after five failures |

*server* is what the server speaks while it behaves: `legacy` has a handshake, `modern` is 2026-07-28, `dual` is both.
The last column is `rmcp` with its default options and a timer of eight seconds around it: *hang* is no outcome within
those, *n GiB* is the memory it took, *n left* the processes that outlived it by two seconds. Both clients were built
without optimisation and ran four at a time, so that a *hang* with much memory may be one that only takes long. It has
neither of the last two transports.

Two things that are not as the protocol has them are taken all the same. A message without `jsonrpc` is read
(`missing_jsonrpc`): several servers leave it out, and what it is can be told without. Half a surrogate pair
(`lone_surrogate`), which no text can hold, is read as U+FFFD, so that its neighbours are not lost.
";

fn summary(page: &mut String, theirs: &Reports) {
    let tried: Vec<&Report> = rows().filter_map(|row| theirs.get(&row.id())).collect();
    let count = |wanted: &dyn Fn(&&&Report) -> bool| tried.iter().filter(wanted).count();
    let _ = write!(
        page,
        "\n**wharf: {} of {} rows come out as they should.** rmcp, in the {} rows that it can be tried in: {} hang, \
         {} take more than 256 MiB, {} leave a process behind.\n",
        rows().count(),
        rows().count(),
        tried.len(),
        count(&|it| it.class == "hang"),
        count(&|it| it.grown_kib > UNBOUNDED_KIB),
        count(&|it| it.leftovers > 0),
    );
}

fn when(row: &Row) -> String {
    match row.by {
        Due::Immediately | Due::Within(_) => String::new(),
        Due::Request(seconds) | Due::Total(seconds) | Due::Connect(seconds) => format!(" at {seconds} s"),
    }
}

fn took(row: &Row, ms: u64) -> &'static str {
    match ms {
        _ if !when(row).is_empty() => "when due",
        0..100 => "< 0.1 s",
        100..1_000 => "< 1 s",
        1_000..3_000 => "< 3 s",
        _ => "< 20 s",
    }
}

fn memory(kib: u64) -> &'static str {
    match kib {
        0..2_048 => "< 2 MiB",
        2_048..16_384 => "< 16 MiB",
        16_384..40_960 => "< 40 MiB",
        _ => "< 64 MiB",
    }
}

fn next(row: &Row) -> &'static str {
    match row.next {
        Next::Works => "works",
        Next::Settles => "works, at the latest the one after",
        Next::Same if row.class == Class::Ok => "works",
        Next::Same => "the same",
        Next::BreakerOpens => "the same, then Open",
    }
}

fn outcome(report: &Report) -> String {
    let mut said = match report.class.as_str() {
        "hang" => "**hang**".to_owned(),
        class => class.to_owned(),
    };
    if report.grown_kib > UNBOUNDED_KIB {
        let _ = write!(said, ", **{:.1} GiB**", report.grown_kib as f64 / f64::from(1 << 20));
    }
    if report.leftovers > 0 {
        let _ = write!(said, ", **{} left**", report.leftovers);
    }
    said
}
