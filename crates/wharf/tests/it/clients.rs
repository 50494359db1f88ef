//! Tests the official MCP clients, as published, against the gateway with the built-in Todo server and a server
//! that npx starts.
//!
//! Every client takes the same steps with the bearer token, over each transport that it supports. A client is one
//! line of the table. `cargo xtask provision` installs the clients.

mod cutter;
mod house;
mod inspector;
mod rust;
mod scripted;
mod snippets;
mod steps;

use cutter::Cutter;
use house::{House, Target};
use std::thread;
use steps::Step;

/// A client and its transport.
struct Client {
    maker: Maker,
    way: Way,
    /// Era that the client uses: `legacy`, `modern`, or `auto` to let it detect the era.
    era: &'static str,
}

/// Implementation of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Python1,
    Python2,
    TypeScript1,
    TypeScript2,
    Inspector,
    Rust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
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
    Client { maker: Maker::Python1, way: Way::Http, era: "legacy" },
    Client { maker: Maker::Python1, way: Way::Sse, era: "legacy" },
    Client { maker: Maker::Python1, way: Way::Stdio, era: "legacy" },
    Client { maker: Maker::Python2, way: Way::Http, era: "auto" },
    Client { maker: Maker::Python2, way: Way::Http, era: "modern" },
    Client { maker: Maker::Python2, way: Way::Http, era: "legacy" },
    Client { maker: Maker::Python2, way: Way::Sse, era: "auto" },
    Client { maker: Maker::Python2, way: Way::Stdio, era: "auto" },
    Client { maker: Maker::TypeScript1, way: Way::Http, era: "legacy" },
    Client { maker: Maker::TypeScript1, way: Way::Sse, era: "legacy" },
    Client { maker: Maker::TypeScript1, way: Way::WebSocket, era: "legacy" },
    Client { maker: Maker::TypeScript1, way: Way::Stdio, era: "legacy" },
    Client { maker: Maker::TypeScript2, way: Way::Http, era: "auto" },
    Client { maker: Maker::TypeScript2, way: Way::Http, era: "modern" },
    Client { maker: Maker::TypeScript2, way: Way::Http, era: "legacy" },
    Client { maker: Maker::TypeScript2, way: Way::Sse, era: "legacy" },
    Client { maker: Maker::TypeScript2, way: Way::Stdio, era: "auto" },
    Client { maker: Maker::Inspector, way: Way::Http, era: "legacy" },
    Client { maker: Maker::Inspector, way: Way::Http, era: "modern" },
    Client { maker: Maker::Inspector, way: Way::Stdio, era: "legacy" },
    Client { maker: Maker::Rust, way: Way::Http, era: "legacy" },
    Client { maker: Maker::Rust, way: Way::Http, era: "modern" },
    Client { maker: Maker::Rust, way: Way::Stdio, era: "legacy" },
];

#[test]
fn python() {
    check(&[Maker::Python1, Maker::Python2]);
}

#[test]
fn typescript() {
    check(&[Maker::TypeScript1, Maker::TypeScript2]);
}

#[test]
fn inspector() {
    check(&[Maker::Inspector]);
}

#[test]
fn rust() {
    check(&[Maker::Rust]);
}

/// Tests server questions with one client after the other, on a separate gateway.
#[test]
fn questions() {
    let house = House::open();
    let all = CLIENTS.iter().filter(|it| it.maker != Maker::Inspector && it.way != Way::Stdio);
    for client in all {
        visit(client, &house, &steps::questions());
        if client.has_roots() {
            // The server caches the roots of the first client it asked.
            house.restart("everything");
            visit(client, &house, &steps::roots());
        }
    }
}

/// The connection breaks during a call: the client reconnects and receives the rest.
#[test]
fn a_broken_connection() {
    let house = House::shared();
    let all = CLIENTS.iter().filter(|it| it.way == Way::Http && it.era == "legacy");
    for client in all.filter(|it| !matches!(it.maker, Maker::Inspector | Maker::Rust)) {
        let cutter = Cutter::before(house.address());
        let mut target = house.target(Way::Http);
        target.words = vec![format!("http://{}/mcp", cutter.address)];
        call_upon(client, &target, &steps::long());
        assert!(cutter.has_cut(), "{:?}", client.maker);
    }
}

/// A server that asks for roots at its start must not get them from the first client that happens to call.
#[test]
fn nobody_widens_what_an_operator_allows() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let folder = folder.path().canonicalize().expect("a folder").display().to_string();
    let entry = "description: d, type: mcp, server: '@modelcontextprotocol/server-filesystem', command: npx";
    for lifecycle in ["singleton", "transient"] {
        let file = format!(
            "tools:\n  - {{name: files, {entry}, args: ['-y', '@modelcontextprotocol/server-filesystem', '{folder}'], lifecycle: {lifecycle}}}\n"
        );
        let house = House::with(&file);
        let client = Client { maker: Maker::Rust, way: Way::Http, era: "legacy" };
        visit(&client, &house, &steps::allowed("files", &folder));
    }
}

/// Runs two clients at a time, because they mostly wait.
fn check(makers: &[Maker]) {
    let house = House::shared();
    let clients: Vec<&Client> = CLIENTS.iter().filter(|it| makers.contains(&it.maker)).collect();
    assert!(!clients.is_empty());
    thread::scope(|scope| {
        for part in clients.chunks(clients.len().div_ceil(2)) {
            let house = &house;
            scope.spawn(move || part.iter().for_each(|it| visit(it, house, &it.steps())));
        }
    });
}

impl Client {
    /// Returns whether to test roots with this client: one per implementation, in the newest era it supports.
    fn has_roots(&self) -> bool {
        let is_newest = self.era == "modern" || matches!(self.maker, Maker::Python1 | Maker::TypeScript1);
        self.way == Way::Http && is_newest
    }

    fn steps(&self) -> Vec<Step> {
        if self.maker == Maker::Inspector { steps::plain() } else { steps::all() }
    }
}

fn visit(client: &Client, house: &House, steps: &[Step]) {
    call_upon(client, &house.target(client.way), steps);
}

fn call_upon(client: &Client, target: &Target, steps: &[Step]) {
    let Client { maker, way, era } = *client;
    let mut visit = match maker {
        Maker::Inspector => inspector::visit(target, era),
        Maker::Rust => rust::visit(target, era),
        scripted => scripted::visit(scripted, target, era),
    };
    steps::check(&format!("{maker:?} over {way:?}, {era}"), steps, &mut *visit);
}
