//! Formats the measurements as the page `docs/performance.md`.

use crate::{
    drive::Measured,
    machine,
    scene::{Who, Wire},
    table::{Findings, Found, LOADS},
};
use std::fmt::Write as _;

const INTRODUCTION: &str = "<!-- Written by `cargo xtask bench`. -->
# Performance

What the gateway costs, measured side by side in one run: only the ratios mean something on another machine. `cargo xtask
bench` measures anew and writes this page.

- **limit** is a gateway that does nothing but read a request, change its id and pass it on: no token, no sessions, no check
  of arguments, no timeouts, no breaker, no record. No gateway can cost less.
- **wharf** is `wharf serve` as anybody runs it: token, sessions, arguments checked against the tool's schema, deadline,
  breaker, and every call written to the journal before it is answered.
- **mcp-proxy** is the gateway of that name from the crate registry.

All stand in front of the same server, which does nothing but answer. *CPU* is the processor time that one call costs the
gateway, in microseconds: the steadiest of the figures, and the one that says how many calls a machine can carry.
";

/// Formats all measurements as a page.
pub(crate) fn page(findings: &Findings) -> String {
    let mut page = INTRODUCTION.to_owned();
    let _ = writeln!(page, "\n{}; medians of {} rounds.", machine::described(), findings.rounds);
    for (wire, title) in [(Wire::Stdio, "stdio"), (Wire::Http, "HTTP")] {
        let _ = writeln!(page, "\n## Calls to a server over {title}\n");
        calls(&mut page, findings, wire);
    }
    lists(&mut page, findings);
    footprints(&mut page, findings);
    page
}

fn calls(page: &mut String, findings: &Findings, wire: Wire) {
    let rows: Vec<&Found<Vec<Measured>>> = findings.calls.iter().filter(|it| it.wire == wire).collect();
    let limit = rows.iter().find(|it| it.who == Who::Probe);
    page.push_str("| load | gateway | calls/s | median µs | p99 µs | CPU µs/call | of the limit |\n");
    page.push_str("| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (load, (name, ..)) in LOADS.into_iter().enumerate() {
        for Found { who, what, .. } in &rows {
            let Measured { calls_per_second, median, p99, cpu_per_call, .. } = &what[load];
            let ratio = limit.map_or(0.0, |it| cpu_per_call / it.what[load].cpu_per_call);
            let name = if *who == rows[0].who { name } else { "" };
            let _ = writeln!(
                page,
                "| {name} | {} | {calls_per_second:.0} | {median:.0} | {p99:.0} | {cpu_per_call:.1} | {ratio:.2} |",
                called(*who)
            );
        }
    }
}

fn lists(page: &mut String, findings: &Findings) {
    page.push_str("\n## `tools/list` of 500 tools, one client\n\n| gateway | median µs | CPU µs |\n| --- | ---: | ---: |\n");
    for Found { who, what, .. } in &findings.lists {
        let _ = writeln!(page, "| {} | {:.0} | {:.1} |", called(*who), what.median, what.cpu_per_call);
    }
}

fn footprints(page: &mut String, findings: &Findings) {
    page.push_str(
        "\n## At rest\n\nFrom the start of the program to the first list of tools, with the start of a stdio server in it; memory \
         after that,\nand with 100 sessions open.\n\n\
         | gateway | start ms | MiB | MiB with 100 sessions |\n| --- | ---: | ---: | ---: |\n",
    );
    for Found { who, what, .. } in &findings.footprints {
        let start = what.start.as_secs_f64() * 1e3;
        let _ = writeln!(
            page,
            "| {} | {start:.1} | {:.1} | {:.1} |",
            called(*who),
            what.idle_mib,
            what.sessions_mib
        );
    }
}

fn called(who: Who) -> &'static str {
    match who {
        Who::Nobody => "no gateway",
        Who::Probe => "limit",
        Who::Wharf => "**wharf**",
        Who::Rival => "mcp-proxy",
    }
}
