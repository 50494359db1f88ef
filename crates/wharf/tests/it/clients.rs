//! Tests the official MCP clients, as published, against the gateway with the built-in Todo server and a server
//! that npx starts.
//!
//! Every client takes the same steps with the bearer token, over each transport that it supports. A client is one
//! line of the table. `cargo xtask provision` installs the clients.

mod cutting_proxy;
mod inspector;
mod mocks;
mod rust;
mod scripted;
mod snippets;
mod steps;
mod test_gateway;

use cutting_proxy::CuttingProxy;
use std::thread;
use steps::Step;
use test_gateway::{Target, TestGateway};

/// A client and its transport.
struct Client {
    kind: ClientKind,
    transport: Transport,
    /// Era that the client uses: `legacy`, `modern`, or `auto` to let it detect the era.
    era: &'static str,
}

/// Implementation of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientKind {
    Python1,
    Python2,
    TypeScript1,
    TypeScript2,
    Inspector,
    Rust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    /// `/mcp` of `wharf serve`.
    Http,
    /// `/sse` of `wharf serve`.
    Sse,
    /// `/ws` of `wharf serve`.
    WebSocket,
    /// A `wharf stdio` that the client starts.
    Stdio,
}

const CLIENTS: &[Client] = &[
    Client { kind: ClientKind::Python1, transport: Transport::Http, era: "legacy" },
    Client { kind: ClientKind::Python1, transport: Transport::Sse, era: "legacy" },
    Client { kind: ClientKind::Python1, transport: Transport::Stdio, era: "legacy" },
    Client { kind: ClientKind::Python2, transport: Transport::Http, era: "auto" },
    Client { kind: ClientKind::Python2, transport: Transport::Http, era: "modern" },
    Client { kind: ClientKind::Python2, transport: Transport::Http, era: "legacy" },
    Client { kind: ClientKind::Python2, transport: Transport::Sse, era: "auto" },
    Client { kind: ClientKind::Python2, transport: Transport::Stdio, era: "auto" },
    Client { kind: ClientKind::TypeScript1, transport: Transport::Http, era: "legacy" },
    Client { kind: ClientKind::TypeScript1, transport: Transport::Sse, era: "legacy" },
    Client { kind: ClientKind::TypeScript1, transport: Transport::WebSocket, era: "legacy" },
    Client { kind: ClientKind::TypeScript1, transport: Transport::Stdio, era: "legacy" },
    Client { kind: ClientKind::TypeScript2, transport: Transport::Http, era: "auto" },
    Client { kind: ClientKind::TypeScript2, transport: Transport::Http, era: "modern" },
    Client { kind: ClientKind::TypeScript2, transport: Transport::Http, era: "legacy" },
    Client { kind: ClientKind::TypeScript2, transport: Transport::Sse, era: "legacy" },
    Client { kind: ClientKind::TypeScript2, transport: Transport::Stdio, era: "auto" },
    Client { kind: ClientKind::Inspector, transport: Transport::Http, era: "legacy" },
    Client { kind: ClientKind::Inspector, transport: Transport::Http, era: "modern" },
    Client { kind: ClientKind::Inspector, transport: Transport::Stdio, era: "legacy" },
    Client { kind: ClientKind::Rust, transport: Transport::Http, era: "legacy" },
    Client { kind: ClientKind::Rust, transport: Transport::Http, era: "modern" },
    Client { kind: ClientKind::Rust, transport: Transport::Stdio, era: "legacy" },
];

#[test]
fn python_clients_complete_all_steps() {
    check(&[ClientKind::Python1, ClientKind::Python2]);
}

#[test]
fn typescript_clients_complete_all_steps() {
    check(&[ClientKind::TypeScript1, ClientKind::TypeScript2]);
}

#[test]
fn inspector_completes_the_plain_steps() {
    check(&[ClientKind::Inspector]);
}

#[test]
fn rust_client_completes_all_steps() {
    check(&[ClientKind::Rust]);
}

/// Tests server questions with one client after the other, on a separate gateway.
#[test]
fn clients_answer_server_questions() {
    let test_gateway = TestGateway::open();
    let all =
        CLIENTS.iter().filter(|it| it.kind != ClientKind::Inspector && it.transport != Transport::Stdio);
    for client in all {
        run_steps(client, &test_gateway, &steps::questions());
        if client.has_roots() {
            // The server caches the roots of the first client it asked.
            test_gateway.restart("everything");
            run_steps(client, &test_gateway, &steps::roots());
        }
    }
}

/// The connection breaks during a call: the client reconnects and receives the rest.
#[test]
fn client_resumes_after_a_broken_connection() {
    let test_gateway = TestGateway::shared();
    let all = CLIENTS.iter().filter(|it| it.transport == Transport::Http && it.era == "legacy");
    for client in all.filter(|it| !matches!(it.kind, ClientKind::Inspector | ClientKind::Rust)) {
        let cutting_proxy = CuttingProxy::in_front_of(test_gateway.address());
        let mut target = test_gateway.target(Transport::Http);
        target.words = vec![format!("http://{}/mcp", cutting_proxy.address)];
        run_against(client, &target, &steps::long());
        assert!(cutting_proxy.has_cut(), "{:?}", client.kind);
    }
}

/// A server that asks for roots at its start must not get them from the first client that happens to call.
#[test]
fn client_roots_do_not_widen_allowed_folders() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let folder = folder.path().canonicalize().expect("a folder").display().to_string();
    let entry = "description: d, type: mcp, server: '@modelcontextprotocol/server-filesystem', command: npx";
    for lifecycle in ["singleton", "transient"] {
        let file = format!(
            "tools:\n  - {{name: files, {entry}, args: ['-y', '@modelcontextprotocol/server-filesystem', '{folder}'], lifecycle: {lifecycle}}}\n"
        );
        let test_gateway = TestGateway::with(&file);
        let client = Client { kind: ClientKind::Rust, transport: Transport::Http, era: "legacy" };
        run_steps(&client, &test_gateway, &steps::allowed("files", &folder));
    }
}

/// Runs two clients at a time, because they mostly wait.
fn check(kinds: &[ClientKind]) {
    let test_gateway = TestGateway::shared();
    let clients: Vec<&Client> = CLIENTS.iter().filter(|it| kinds.contains(&it.kind)).collect();
    assert!(!clients.is_empty());
    thread::scope(|scope| {
        for part in clients.chunks(clients.len().div_ceil(2)) {
            let test_gateway = &test_gateway;
            scope.spawn(move || part.iter().for_each(|it| run_steps(it, test_gateway, &it.steps())));
        }
    });
}

impl Client {
    /// Returns whether to test roots with this client: one per implementation, in the newest era it supports.
    fn has_roots(&self) -> bool {
        let is_newest =
            self.era == "modern" || matches!(self.kind, ClientKind::Python1 | ClientKind::TypeScript1);
        self.transport == Transport::Http && is_newest
    }

    fn steps(&self) -> Vec<Step> {
        if self.kind == ClientKind::Inspector { steps::plain() } else { steps::all() }
    }
}

fn run_steps(client: &Client, test_gateway: &TestGateway, steps: &[Step]) {
    run_against(client, &test_gateway.target(client.transport), steps);
}

fn run_against(client: &Client, target: &Target, steps: &[Step]) {
    let Client { kind, transport, era } = *client;
    let mut run_steps = match kind {
        ClientKind::Inspector => inspector::run_steps(target, era),
        ClientKind::Rust => rust::run_steps(target, era),
        scripted => scripted::run_steps(scripted, target, era),
    };
    steps::check(&format!("{kind:?} over {transport:?}, {era}"), steps, &mut *run_steps);
}
