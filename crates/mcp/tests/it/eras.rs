//! Tests era detection: one row per kind of server.

use crate::fake::{DISCOVERED, Fake, INITIALIZED, NO_DISCOVERY};
use tokio::time::Instant;
use wharf_mcp::session::{ClientInfo, Era, EraHint, Roots};
use wharf_mcp::{Options, Session};

pub(crate) fn options() -> Options {
    Options::new(ClientInfo { name: "test".into(), version: "0".into() })
}

/// Connects and compares a report: version or failure, seconds taken, number of connections, and methods sent.
async fn check(hint: EraHint, script: &str, expected: &str) {
    let fake = Fake::new(script);
    let begun = Instant::now();
    let connected = Session::connect(&fake, &Options { era: hint, ..options() }).await;
    let outcome = match &connected {
        Ok(connected) => connected.session.terms().version.to_string(),
        Err(failure) => format!("{:?} {:?}: {failure}", failure.class, failure.phase),
    };
    // The last notification may still be in flight.
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    let report = format!("{outcome}; {} s; {}x; {}", begun.elapsed().as_secs(), fake.opens(), fake.methods());
    assert_eq!(report, expected, "for\n{script}");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_server_is_negotiated_with() {
    let all = |rules: &[&str]| rules.join("\n");
    for (script, expected) in [
        (all(&[DISCOVERED]), "2026-07-28; 0 s; 1x; server/discover"),
        (
            all(&[NO_DISCOVERY, INITIALIZED]),
            "2025-11-25; 0 s; 1x; server/discover initialize notifications/initialized",
        ),
        // Exits on an unknown method: restarted, and not probed again.
        (
            all(&["server/discover: exit", INITIALIZED]),
            "2025-11-25; 0 s; 2x; server/discover initialize notifications/initialized",
        ),
        // Ignores the probe: initialized after a delay on the same connection.
        (all(&[INITIALIZED]), "2025-11-25; 2 s; 1x; server/discover initialize notifications/initialized"),
        (
            all(&["start: line booting", INITIALIZED]),
            "2025-11-25; 1 s; 1x; server/discover initialize notifications/initialized",
        ),
        // Slow, of either era: both requests are pending, and the first answer decides.
        (
            all(&["start: wait 12000", DISCOVERED, "initialize: error -32022"]),
            "2026-07-28; 12 s; 1x; server/discover initialize",
        ),
        // Answers out of order, and rejects the handshake as a second one.
        (
            all(&[
                "start: wait 12000",
                r#"initialize: error 0 | line {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#,
            ]),
            "2026-07-28; 12 s; 1x; server/discover initialize",
        ),
        // Ignores the probe and rejects the handshake.
        (
            all(&["initialize: error -32603"]),
            "Rpc Handshake: the server answered with an error: no (-32603); 4 s; 1x; server/discover initialize",
        ),
        (
            all(&["start: wait 12000", NO_DISCOVERY, INITIALIZED]),
            "2025-11-25; 12 s; 1x; server/discover initialize notifications/initialized",
        ),
        // Knows `server/discover`, but supports only handshake versions.
        (
            all(&[
                r#"server/discover: result {"supportedVersions":["2025-06-18","2024-11-05"]}"#,
                INITIALIZED,
            ]),
            "2025-11-25; 0 s; 1x; server/discover initialize notifications/initialized",
        ),
        (
            all(&[r#"server/discover: error -32022 {"supported":["2025-03-26"]}"#, INITIALIZED]),
            "2025-11-25; 0 s; 1x; server/discover initialize notifications/initialized",
        ),
        (
            all(&[r#"server/discover: result {"supportedVersions":["2031-01-01"]}"#]),
            "Protocol Handshake: no protocol version in common: the server speaks 2031-01-01; 0 s; 1x; server/discover",
        ),
        // Rejects the handshake with a version error, so it knows the other era.
        (
            all(&[
                "server/discover: wait 3000 | result {\"supportedVersions\":[\"2026-07-28\"]}",
                "initialize: error -32022",
            ]),
            "2026-07-28; 3 s; 1x; server/discover initialize",
        ),
        (
            all(&[NO_DISCOVERY, "initialize: error -32603"]),
            "Rpc Handshake: the server answered with an error: no (-32603); 0 s; 1x; server/discover initialize",
        ),
        (
            all(&[NO_DISCOVERY, r#"initialize: result {"protocolVersion":"1999-01-01"}"#]),
            "Protocol Handshake: the server requires the unsupported protocol version `1999-01-01`; 0 s; 1x; server/discover initialize",
        ),
        (all(&["start: wait 90000"]), "Timeout Handshake: no answer in time; 60 s; 1x; "),
        (all(&["start: exit"]), "Closed Handshake: the server closed the connection; 0 s; 2x; "),
    ] {
        check(EraHint::Auto, &script, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_era_hint_skips_the_probe() {
    let legacy = [NO_DISCOVERY, INITIALIZED].join("\n");
    let modern = [DISCOVERED, "initialize: error -32022"].join("\n");
    for (hint, script, expected) in [
        (EraHint::Cached(Era::Legacy), &legacy, "2025-11-25; 0 s; 1x; initialize notifications/initialized"),
        (EraHint::Only(Era::Legacy), &legacy, "2025-11-25; 0 s; 1x; initialize notifications/initialized"),
        (EraHint::Cached(Era::Modern), &modern, "2026-07-28; 0 s; 1x; server/discover"),
        // The cached era was wrong, in both directions.
        (EraHint::Cached(Era::Legacy), &modern, "2026-07-28; 0 s; 1x; initialize server/discover"),
        (
            EraHint::Cached(Era::Modern),
            &legacy,
            "2025-11-25; 0 s; 1x; server/discover initialize notifications/initialized",
        ),
        (
            EraHint::Only(Era::Modern),
            &legacy,
            "Protocol Handshake: the server does not speak 2026-07-28; 0 s; 1x; server/discover",
        ),
        (
            EraHint::Only(Era::Legacy),
            &modern,
            "Rpc Handshake: the server answered with an error: no (-32022); 0 s; 1x; initialize",
        ),
    ] {
        check(hint, script, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_roots_has_them_before_the_first_call() {
    let asks = r#"notifications/initialized: line {"jsonrpc":"2.0","id":"r1","method":"roots/list"}"#;
    let fake = Fake::new(&[NO_DISCOVERY, INITIALIZED, asks, "ping: result {}"].join("\n"));
    let host = std::sync::Arc::new(Roots(vec![("file:///srv".into(), "srv".into())]));
    let connected = Session::connect(&fake, &Options { host, ..options() }).await.unwrap();
    assert_eq!(connected.session.terms().era, Era::Legacy);
    let answer = fake.received().pop().unwrap();
    let expected = r#"{"jsonrpc":"2.0","id":"r1","result":{"roots":[{"uri":"file:///srv","name":"srv"}]}}"#;
    assert_eq!(answer, expected);
}

#[tokio::test(start_paused = true)]
async fn the_handshake_carries_configured_meta() {
    let extra = Some(wharf_mcp::Raw::parse(r#"{"com.example/team":"a"}"#).unwrap());
    for (script, expected) in [
        (
            [NO_DISCOVERY, INITIALIZED].join("\n"),
            r#""clientInfo":{"name":"test","version":"0"},"_meta":{"com.example/team":"a"}}"#,
        ),
        (
            DISCOVERED.to_owned(),
            r#""io.modelcontextprotocol/clientCapabilities":{},"com.example/team":"a"}}"#,
        ),
    ] {
        let fake = Fake::new(&script);
        Session::connect(&fake, &Options { extra_meta: extra.clone(), ..options() }).await.unwrap();
        assert!(fake.received().iter().any(|line| line.contains(expected)), "{:?}", fake.received());
    }
}
