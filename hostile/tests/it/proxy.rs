//! Tests our client with a good server behind the damaging proxy.

use hostile::{
    orders::{Orders, Transport},
    proxy::{Harm, Proxy},
    serve,
};
use serde_json::json;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::task::JoinSet;
use wharf_config::{Env, load};
use wharf_mcp::http::Client;
use wharf_runtime::{
    Call, Ground, Handle, Redactor, Runtime, Tuning,
    upstream::{Installs, Processes},
};

/// Allowed outcomes of a call: success, or an error of one of these types.
type Expected = &'static [&'static str];

const FINE: Expected = &["OK"];
const LOST: Expected = &["MCPConnectionError"];
const LATE: Expected = &["MCPTimeoutError"];
/// A flipped bit may hit anything: a letter of the text, a bracket, a length.
const ANYTHING: Expected = &["OK", "MCPConnectionError", "MCPProtocolError", "MCPTimeoutError"];

const HARMS: &[(Harm, Expected)] = &[
    (Harm::None, FINE),
    (Harm::Latency(Duration::from_millis(50)), FINE),
    (Harm::Throttle(4_000), FINE),
    (Harm::Slice, FINE),
    (Harm::Cut(0), LOST),
    (Harm::Reset(0), LOST),
    (Harm::HalfClose(0), LOST),
    (Harm::Silence(0), LATE),
    (Harm::Corrupt(150), ANYTHING),
    (Harm::Corrupt(3), ANYTHING),
];

#[tokio::test]
async fn http_survives_a_bad_line() {
    check(Transport::Http, "http").await;
}

#[tokio::test]
async fn sse_survives_a_bad_line() {
    check(Transport::Sse, "sse").await;
}

#[tokio::test]
async fn websocket_survives_a_bad_line() {
    check(Transport::Ws, "websocket").await;
}

/// Tries every kind of damage during connection setup and on an established connection, and then without damage.
async fn check(transport: Transport, name: &str) {
    let mut lines = JoinSet::new();
    for (harm, expected) in HARMS {
        let name = name.to_owned();
        lines.spawn(async move {
            for stands in [false, true] {
                let line = BadLine::new(transport, &name, *harm).await;
                if stands {
                    line.check(&format!("{name}, before {harm:?}"), FINE).await;
                }
                line.proxy.harm(*harm);
                line.check(&format!("{name}, {harm:?}, standing: {stands}"), expected).await;
                line.proxy.harm(Harm::None);
                // A silent connection looks idle, so the test has to restart the source.
                line.handle.restart("it").expect("the source");
                line.check(&format!("{name}, after {harm:?}, standing: {stands}"), FINE).await;
                line.runtime.shutdown(Duration::from_millis(100)).await;
            }
        });
    }
    lines.join_all().await;
}

struct BadLine {
    proxy: Proxy,
    runtime: Runtime,
    handle: Handle,
    _server: serve::Listening,
}

impl BadLine {
    async fn new(transport: Transport, name: &str, harm: Harm) -> BadLine {
        // Uses a short timeout only where the response may never arrive.
        let patience = if matches!(harm, Harm::Silence(_) | Harm::Corrupt(_)) { 5 } else { 30 };
        let orders = Orders { transport, ..Orders::default() };
        let server = serve::listen(&orders).await.expect("the server listens");
        let proxy = Proxy::before(server.address).await.expect("the proxy listens");
        let scheme = if transport == Transport::Ws { "ws" } else { "http" };
        let text = format!(
            "tools:\n  - {{name: it, description: d, type: mcp, server: x, transport: {name}, url: '{scheme}://{}/mcp', \
             load_tools: false, load_prompts: false, request_timeout: {patience}, connect_timeout: {patience}}}\n",
            proxy.address
        );
        let (plan, diagnostics) = load(text, &Env::bare());
        let plan = plan.unwrap_or_else(|| panic!("{diagnostics:?}"));
        let ground = Ground {
            scratch: PathBuf::from("/nowhere"),
            http: Client::new(Duration::from_secs(patience)).expect("HTTP"),
            credentials: None,
            redactor: Arc::new(Redactor::of(&plan)),
            supervisor: None,
            builtins: None,
            processes: Processes::default(),
            installs: Installs::default(),
        };
        let runtime = Runtime::start(&plan, &ground, Tuning::default());
        BadLine { proxy, handle: runtime.handle(), runtime, _server: server }
    }

    async fn call(&self) -> String {
        let call = Call::new("it:echo").arguments(json!({ "nonce": "ahoy" }));
        let record = self.handle.call(call).await;
        match record.fault() {
            Some(fault) => fault.kind.as_str().to_owned(),
            None => "OK".to_owned(),
        }
    }

    async fn check(&self, what: &str, expected: Expected) {
        let outcome = self.call().await;
        assert!(expected.contains(&outcome.as_str()), "{what}: {outcome} instead of {expected:?}");
    }
}
