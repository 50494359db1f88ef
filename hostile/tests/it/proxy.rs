//! Tests our client with a good server behind the damaging proxy.

use hostile::{
    options::{ServerOptions, Transport},
    proxy::{Harm, Proxy},
    serve,
};
use serde_json::json;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::task::JoinSet;
use wharf_config::{Env, load};
use wharf_mcp::http::HttpClient;
use wharf_runtime::{
    Call, Handle, Redactor, Runtime, RuntimeOptions, UpstreamContext,
    upstream::{Installs, ProcessLimit},
};

/// Allowed outcomes of a call: success, or an error of one of these types.
type Expected = &'static [&'static str];

const SUCCESS: Expected = &["OK"];
const CONNECTION_ERROR: Expected = &["MCPConnectionError"];
const TIMEOUT_ERROR: Expected = &["MCPTimeoutError"];
/// A flipped bit may hit anything: a letter of the text, a bracket, a length.
const ANYTHING: Expected = &["OK", "MCPConnectionError", "MCPProtocolError", "MCPTimeoutError"];

const HARMS: &[(Harm, Expected)] = &[
    (Harm::None, SUCCESS),
    (Harm::Latency(Duration::from_millis(50)), SUCCESS),
    (Harm::Throttle(4_000), SUCCESS),
    (Harm::Slice, SUCCESS),
    (Harm::Cut(0), CONNECTION_ERROR),
    (Harm::Reset(0), CONNECTION_ERROR),
    (Harm::HalfClose(0), CONNECTION_ERROR),
    (Harm::Silence(0), TIMEOUT_ERROR),
    (Harm::Corrupt(150), ANYTHING),
    (Harm::Corrupt(3), ANYTHING),
];

#[tokio::test]
async fn http_survives_a_damaged_connection() {
    check(Transport::Http, "http").await;
}

#[tokio::test]
async fn sse_survives_a_damaged_connection() {
    check(Transport::Sse, "sse").await;
}

#[tokio::test]
async fn websocket_survives_a_damaged_connection() {
    check(Transport::Ws, "websocket").await;
}

/// Tries every kind of damage during connection setup and on an established connection, and then without damage.
async fn check(transport: Transport, name: &str) {
    let mut trials = JoinSet::new();
    for (harm, expected) in HARMS {
        let name = name.to_owned();
        trials.spawn(async move {
            for established in [false, true] {
                let line = DamagedConnection::new(transport, &name, *harm).await;
                if established {
                    line.check(&format!("{name}, before {harm:?}"), SUCCESS).await;
                }
                line.proxy.harm(*harm);
                line.check(&format!("{name}, {harm:?}, established: {established}"), expected).await;
                line.proxy.harm(Harm::None);
                // A silent connection looks idle, so the test has to restart the source.
                line.handle.restart("it").expect("the source");
                line.check(&format!("{name}, after {harm:?}, established: {established}"), SUCCESS).await;
                line.runtime.shutdown(Duration::from_millis(100)).await;
            }
        });
    }
    trials.join_all().await;
}

struct DamagedConnection {
    proxy: Proxy,
    runtime: Runtime,
    handle: Handle,
    _server: serve::Listening,
}

impl DamagedConnection {
    async fn new(transport: Transport, name: &str, harm: Harm) -> DamagedConnection {
        // Uses a short timeout only where the response may never arrive.
        let timeout = if matches!(harm, Harm::Silence(_) | Harm::Corrupt(_)) { 5 } else { 30 };
        let options = ServerOptions { transport, ..ServerOptions::default() };
        let server = serve::listen(&options).await.expect("the server listens");
        let proxy = Proxy::in_front_of(server.address).await.expect("the proxy listens");
        let scheme = if transport == Transport::Ws { "ws" } else { "http" };
        let text = format!(
            "tools:\n  - {{name: it, description: d, type: mcp, server: x, transport: {name}, url: '{scheme}://{}/mcp', \
             load_tools: false, load_prompts: false, request_timeout: {timeout}, connect_timeout: {timeout}}}\n",
            proxy.address
        );
        let (plan, diagnostics) = load(text, &Env::bare());
        let plan = plan.unwrap_or_else(|| panic!("{diagnostics:?}"));
        let ground = UpstreamContext {
            scratch: PathBuf::from("/nowhere"),
            http: HttpClient::new(Duration::from_secs(timeout)).expect("HTTP"),
            credentials: None,
            redactor: Arc::new(Redactor::of(&plan)),
            supervisor: None,
            builtins: None,
            processes: ProcessLimit::default(),
            installs: Installs::default(),
            recorded: None,
            faults: None,
        };
        let runtime = Runtime::start(&plan, &ground, RuntimeOptions::default());
        DamagedConnection { proxy, handle: runtime.handle(), runtime, _server: server }
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
