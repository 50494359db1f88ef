//! Formats the measurements as the page `docs/performance.md`.

use crate::{
    drive::{Measurement, RequestKind},
    gateways::{GatewayKind, UpstreamTransport},
    growth::{Growth, GrowthRow},
    machine,
    mixed::MixedRow,
    table::{GatewayResult, LOADS, Measurements},
};
use std::fmt::Write as _;

const INTRODUCTION: &str = "<!-- Written by `cargo xtask bench`. -->
# Performance

The cost of the gateway, measured side by side in one run. On another machine, compare only the ratios. `cargo xtask bench`
measures again and rewrites this page.

- **limit** is a gateway that only reads a request, changes its id and forwards it: no token, no sessions, no check of
  arguments, no timeouts, no breaker, no record. No gateway can cost less.
- **wharf** is `wharf serve` with its defaults: token, sessions, arguments checked against the tool's schema, deadline,
  breaker, and every call written to the journal before it is answered.
- **mcp-proxy** is the gateway of that name from the crate registry.

All are in front of the same server, which only answers. *CPU* is the processor time of the gateway per call, in
microseconds. It varies least, and shows how many calls a machine can handle.
";

/// Formats all measurements as a page.
pub(crate) fn page(measurements: &Measurements) -> String {
    let mut page = INTRODUCTION.to_owned();
    let _ = writeln!(page, "\n{}; medians of {} rounds.", machine::describe(), measurements.rounds);
    for (transport, title) in [(UpstreamTransport::Stdio, "stdio"), (UpstreamTransport::Http, "HTTP")] {
        let _ = writeln!(page, "\n## Calls to a server over {title}\n");
        calls(&mut page, measurements, transport);
    }
    lists(&mut page, measurements);
    footprints(&mut page, measurements);
    mixed(&mut page, measurements);
    page.push_str(&growth(&measurements.growth));
    page
}

fn calls(page: &mut String, measurements: &Measurements, transport: UpstreamTransport) {
    let rows: Vec<&GatewayResult<Vec<Measurement>>> =
        measurements.calls.iter().filter(|it| it.transport == transport).collect();
    let limit = rows.iter().find(|it| it.kind == GatewayKind::Probe);
    page.push_str("| load | gateway | calls/s | median µs | p99 µs | CPU µs/call | of the limit |\n");
    page.push_str("| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (load, (name, ..)) in LOADS.into_iter().enumerate() {
        for GatewayResult { kind, what, .. } in &rows {
            let Measurement { calls_per_second, median, p99, cpu_per_call, .. } = &what[load];
            let ratio = limit.map_or(0.0, |it| cpu_per_call / it.what[load].cpu_per_call);
            let name = if *kind == rows[0].kind { name } else { "" };
            let _ = writeln!(
                page,
                "| {name} | {} | {calls_per_second:.0} | {median:.0} | {p99:.0} | {cpu_per_call:.1} | {ratio:.2} |",
                display_name(*kind)
            );
        }
    }
}

fn lists(page: &mut String, measurements: &Measurements) {
    page.push_str(
        "\n## `tools/list` of 500 tools, one client\n\n\
         | gateway | protocol | median µs | CPU µs |\n| --- | --- | ---: | ---: |\n",
    );
    for GatewayResult { kind, what: (request, what), .. } in &measurements.lists {
        let protocol = if *request == RequestKind::ModernList { "2026-07-28" } else { "2025-06-18" };
        let Measurement { median, cpu_per_call, .. } = what;
        let _ = writeln!(page, "| {} | {protocol} | {median:.0} | {cpu_per_call:.1} |", display_name(*kind));
    }
}

fn footprints(page: &mut String, measurements: &Measurements) {
    page.push_str(
        "\n## At rest\n\nFrom the start of the program to the first list of tools, with the start of a stdio server in it; memory \
         after that,\nand with 100 sessions open.\n\n\
         | gateway | start ms | MiB | MiB with 100 sessions |\n| --- | ---: | ---: | ---: |\n",
    );
    for GatewayResult { kind, what, .. } in &measurements.footprints {
        let start = what.start.as_secs_f64() * 1e3;
        let _ = writeln!(
            page,
            "| {} | {start:.1} | {:.1} | {:.1} |",
            display_name(*kind),
            what.idle_mib,
            what.sessions_mib
        );
    }
}

/// Formats how long small calls take beside large results.
fn mixed(page: &mut String, measurements: &Measurements) {
    page.push_str(
        "\n## Small calls beside large results\n\nOne client with calls of 100 B, alone and while 16 others receive \
         1 MiB with each call, over HTTP.\n\n\
         | gateway | median µs alone | beside | p99 µs alone | beside | ratio of p99 |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for MixedRow { kind, alone, beside } in &measurements.mixed {
        let _ = writeln!(
            page,
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} |",
            display_name(*kind),
            alone.median,
            beside.median,
            alone.p99,
            beside.p99,
            beside.p99 / alone.p99
        );
    }
}

/// Formats how the cost of a call changes as the gateway grows.
pub(crate) fn growth(growth: &Growth) -> String {
    let mut page = "\n## As it grows\n\nThe cost of a call of 100 B to a server over HTTP, 16 clients.\n\n\
        | what grows | from | to | CPU µs/call | CPU µs/call then | ratio |\n\
        | --- | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for row in &growth.rows {
        let GrowthRow { what: (what, from, to), small, large } = row;
        let _ = writeln!(
            page,
            "| {what} | {from} | {to} | {:.1} | {:.1} | {:.2} |",
            small.cpu_per_call,
            large.cpu_per_call,
            row.ratio()
        );
    }
    let Growth { long_list, session_kib, .. } = growth;
    let Measurement { median, cpu_per_call, .. } = long_list;
    let _ = writeln!(
        page,
        "\n`tools/list` of 10,000 tools: median {median:.0} µs, CPU {cpu_per_call:.1} µs. Memory of an idle session: \
         {session_kib:.1} KiB, the mean of 9,900."
    );
    page
}

fn display_name(kind: GatewayKind) -> &'static str {
    match kind {
        GatewayKind::NoGateway => "no gateway",
        GatewayKind::Probe => "limit",
        GatewayKind::WharfBefore => "wharf before",
        GatewayKind::WharfOnOneThread => "wharf, 1 thread",
        GatewayKind::Wharf => "**wharf**",
        GatewayKind::Rival => "mcp-proxy",
    }
}
