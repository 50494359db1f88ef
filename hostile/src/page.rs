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

How wharf handles servers that misbehave. The server is `hostile/`, which writes raw bytes and uses no MCP library. Each
row below is one of its modes. A test puts the server into an agent file beside a good one, calls a tool of both at the
same time, makes one more call, and looks for processes that are left. `cargo test -p hostile` tests every row.
`UPDATE=1 cargo test -p hostile` also tests the client of the reference SDK, and rewrites this page.

For every row the test checks: the class; the time (a failure within three seconds on a busy machine with two cores, a
timeout when it is due); at most 64 MiB more memory at any moment; no effect on the good server; the result of the next
call; no process left after two seconds; and a failure message with the cause.

| class | what the caller gets |
| --- | --- |
| OK | the answer |
| TE | the tool's own error |
| Conn | `MCPConnectionError`: unreachable, or disconnected |
| Time | `MCPTimeoutError`, at the configured time |
| Proto | `MCPProtocolError`: the server broke the protocol or a limit |
| NF | `MCPToolNotFoundError` |
| Open | `MCPConnectionError` at once: the circuit breaker is open after five failures |

*server* is the era of the server while it behaves: `legacy` has a handshake, `modern` is 2026-07-28, `dual` is both. The
last column is `rmcp` with its default options and a timeout of eight seconds: *hang* means no outcome within that time,
*n GiB* is the memory it used, *n left* is the number of processes left after two seconds. Both clients were built
without optimisation and ran four at a time, so a *hang* with much memory may only be slow. rmcp does not have the last
two transports.

wharf accepts two violations of the protocol. It reads a message without `jsonrpc` (`missing_jsonrpc`), because several
servers leave it out and the message is clear without it. It reads half a surrogate pair (`lone_surrogate`), which is not
valid text, as U+FFFD, so that the rest of the result is not lost.
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
