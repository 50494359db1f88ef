//! The page `docs/conformance.md`, which is written from the results.

use super::{ROUTES, Results, Route, SDKS, VERSIONS};
use crate::official_suite::LATEST;
use crate::suite::{RUNS, expected_failures};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

const BEGIN: &str = "\
# Conformance

The official conformance suite of MCP ([`@modelcontextprotocol/conformance`][suite] 0.2.0-alpha.12) tests our client, our
server, and the gateway in front of other servers. `cargo xtask test` runs all of it.

## Through the gateway

Three servers, each on an SDK of the protocol, offer what the suite asks for. Each column is one way from the suite to the
server. A number is how many scenarios pass. The test fails if a scenario passes directly and not through the gateway.

";

const AFTER_TABLE: &str = "
- HTTP: suite → `wharf serve` → server.
- stdio: suite → `wharf serve` → `wharf stdio` → server.
- SSE and WebSocket: suite → `wharf serve` → `/sse` or `/ws` of another `wharf serve` → server.

The suite speaks streamable HTTP only, so the first gateway translates for the second.

";

const OUR_OWN: &str = "
## Our own client and server

The suite also tests our client and our server alone, and the gateway in front of our server. `gateway-legacy` is the gateway
in front of a server that speaks the handshake era only. 0.1.16 is an earlier version of the suite.

| run | suite | scenarios | expected to fail |
| --- | --- | --- | --- |
";

const END: &str = "
[suite]: https://www.npmjs.com/package/@modelcontextprotocol/conformance
";

/// Compares the page with the results. With `UPDATE=1` writes it.
#[expect(clippy::disallowed_methods, reason = "the one who runs the test sets `UPDATE`")]
pub(super) fn check(results: &Results) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/conformance.md");
    let text = write(results);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).expect("the page can be written");
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page, text, "docs/conformance.md is out of date: run this test with `UPDATE=1`");
}

fn write(results: &Results) -> String {
    let mut text = BEGIN.to_owned();
    text += "| SDK | version | scenarios | directly | HTTP | stdio | SSE | WebSocket |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for sdk in &SDKS {
        for (version, scenarios) in VERSIONS {
            let _ = write!(text, "| {} (`{}`) | {version} | {scenarios} |", sdk.name, sdk.package);
            for route in ROUTES {
                let passed = results[&(sdk.name, version, route)].values().filter(|passed| **passed).count();
                let _ = write!(text, " {passed} |");
            }
            text.push('\n');
        }
    }
    text += AFTER_TABLE;
    write_lacking(results, &mut text);
    text += OUR_OWN;
    write_runs(&mut text);
    text + END
}

/// Writes what servers fail directly, once for the SDKs that have it in common.
fn write_lacking(results: &Results, text: &mut String) {
    let mut lacking: BTreeMap<(&str, Vec<String>), Vec<&str>> = BTreeMap::new();
    for sdk in &SDKS {
        let Some((_, reason)) = sdk.lacks else { continue };
        let all = VERSIONS.iter().flat_map(|(version, _)| &results[&(sdk.name, *version, Route::Direct)]);
        let failed = all.filter(|(_, passed)| !**passed).map(|(name, _)| format!("`{name}`"));
        lacking.entry((reason, failed.collect())).or_default().push(sdk.name);
    }
    for ((reason, failed), names) in lacking {
        let _ = writeln!(
            text,
            "Servers on the SDK for {} fail some, because the SDK {reason}:",
            names.join(" and ")
        );
        let _ = writeln!(text, "{}.", failed.join(",\n"));
    }
}

fn write_runs(text: &mut String) {
    let expected = expected_failures();
    let mut written = Vec::new();
    for run in RUNS {
        let failing = expected.keys().filter(|(name, _)| *name == run.name).count();
        let suite = if run.suite == LATEST { "0.2.0-alpha.12" } else { "0.1.16" };
        let row = format!("| {} | {suite} | {} | {failing} |\n", run.name, run.scenarios);
        // Several runs have one name: a server in both eras, and one or two gateways.
        if !written.contains(&row) {
            text.push_str(&row);
            written.push(row);
        }
    }
    text.push('\n');
    for ((run, scenario), reason) in expected {
        let _ = writeln!(text, "- `{scenario}` of {run}: {reason}.");
    }
}
