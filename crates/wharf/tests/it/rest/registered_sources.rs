//! Tests registered sources: tools, health, calls, and the addresses their names resolve to.

use super::upstream::Upstream;
use crate::{
    serve::server::Server,
    servers::workspace::{caches, path_with},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{IpAddr, TcpListener, TcpStream},
    thread::sleep,
    time::Duration,
};
use tempfile::TempDir;
use wharf_store::{Location, SourceRow, Store};

const FAR: &str = "/api/v1/sources/far";
/// Value that a plugin gets from the environment of this machine if its manifest declares the variable.
pub(super) const MACHINE_TOKEN: &str = "canary-g7-3e9a5510";

const SLOW: &str = "/api/v1/tools/far:slow/call";

fn register(server: &Server, body: &Value) -> Value {
    let (status, source) = server.ask("POST", "/api/v1/sources", Some(body));
    assert_eq!(status, 201, "{source}");
    source
}

fn far(upstream: &Upstream) -> Value {
    json!({ "name": "far", "mcp_server_url": format!("http://{}", upstream.address) })
}

/// Waits until a source has the wanted state.
fn until(server: &Server, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut shown = Value::Null;
    for _ in 0..400 {
        shown = server.ask("GET", path, None).1;
        if wanted(&shown) {
            return shown;
        }
        sleep(Duration::from_millis(25));
    }
    panic!("it stays so: {shown}");
}

/// Returns the row of the only registered source from the database.
fn row(folder: &TempDir) -> SourceRow {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let file = folder.path().join("home/wharf.db");
        let store = Store::open(&Location::Sqlite(file)).await.expect("a database");
        let mut rows = store.sources().await.expect("sources");
        store.close().await;
        rows.pop().expect("a source")
    })
}

#[test]
fn changed_tools_are_stored() {
    let upstream = Upstream::start();
    let server = Server::start(&[]);
    let whole = register(&server, &far(&upstream))["inventory_hash"].clone();
    upstream.hide_chatty(true);
    let fewer = until(&server, FAR, |it| it["tools"] == 1 && it["inventory_hash"] != whole);
    assert_ne!(fewer["inventory_hash"], Value::Null);
    let (_, report) = server.ask("POST", &format!("{FAR}/refresh"), None);
    assert_eq!(
        (&report["tools_deprecated"], &report["inventory_hash"]),
        (&json!(0), &fewer["inventory_hash"])
    );
    upstream.hide_chatty(false);
    until(&server, FAR, |it| it["tools"] == 2 && it["inventory_hash"] == whole);
    let mut server = server;
    server.child.kill().expect("it ran");
    assert_eq!(Some(row(&server.into_folder()).inventory_hash), Some(whole.as_str().map(str::to_owned)));
}

#[test]
fn health_of_a_source_is_stored() {
    let upstream = Upstream::start();
    let server = Server::start(&[]);
    assert_eq!(register(&server, &far(&upstream))["health"], "healthy");
    drop(upstream);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (status, failed) = server.ask("POST", SLOW, Some(&json!({})));
        assert_eq!(status, 502, "{failed}");
        seen.push(server.ask("GET", FAR, None).1["health"].clone());
    }
    assert_eq!(seen, ["degraded", "degraded", "unhealthy"]);
    // The health is written asynchronously, and only when it changes.
    let kept = (0..400).any(|_| {
        sleep(Duration::from_millis(25));
        row(&server.folder).health == "unhealthy"
    });
    assert!(kept, "{:?}", row(&server.folder));
    assert_eq!((row(&server.folder).consecutive_failures, row(&server.folder).epoch), (3, 1));
}

/// A call in flight completes when its source is removed, and no further call is accepted.
#[test]
fn call_in_flight_completes_when_its_source_is_removed() {
    let upstream = Upstream::start();
    let server = Server::start(&[]);
    register(&server, &far(&upstream));
    let mut stream = TcpStream::connect(&server.address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let (address, token, body) = (&server.address, &server.token, r#"{"arguments":{"millis":3000}}"#);
    let length = body.len();
    write!(
        stream,
        "POST {SLOW} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .expect("it listens");
    let calls = || upstream.heard.calls.load(std::sync::atomic::Ordering::Relaxed);
    assert!((0..400).any(|_| {
        sleep(Duration::from_millis(25));
        calls() == 1
    }));
    assert_eq!(server.ask("DELETE", FAR, None).0, 204);
    assert_eq!(server.ask("POST", SLOW, Some(&json!({}))).0, 404);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("call 1"), "{answer}");
    let (_, journal) = server.ask("GET", "/api/v1/calls", None);
    assert_eq!(journal["items"].as_array().map(Vec::len), Some(2), "{journal}");
    assert_eq!(calls(), 1);
}

/// Returns a host name of this machine that resolves to a local address.
fn name_inside() -> String {
    let hosts = fs::read_to_string("/etc/hosts").expect("the names of this machine");
    let named = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        let inside = match address {
            IpAddr::V4(it) => it.is_loopback() || it.is_private(),
            IpAddr::V6(it) => it.is_loopback() || it.is_unique_local(),
        };
        let name = words.find(|it| *it != "localhost" && !it.ends_with(".localhost"))?;
        inside.then(|| name.to_owned())
    };
    hosts.lines().find_map(named).expect("/etc/hosts has a name for this machine beside `localhost`")
}

/// A host name that resolves to a local address is not connected to, although the URL looks public.
#[test]
fn host_name_of_a_local_address_is_not_dialled() {
    let canary = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0")).expect("a port");
    canary.set_nonblocking(true).expect("a listener");
    let port = canary.local_addr().expect("an address").port();
    let server = Server::start(&[]);
    let name = name_inside();
    for (transport, scheme) in [("http", "https"), ("sse", "https"), ("websocket", "wss")] {
        let source = register(
            &server,
            &json!({ "name": transport, "description": "d", "type": "mcp", "server": "x", "transport": transport,
                "url": format!("{scheme}://{name}:{port}/mcp") }),
        );
        assert_eq!(
            (&source["discovery"], &source["inventory"]),
            (&json!("failed"), &Value::Null),
            "{source}"
        );
        let (status, refused) = server.ask("POST", &format!("/api/v1/sources/{transport}/refresh"), None);
        assert_eq!(status, 502, "{refused}");
        let (status, refused) =
            server.ask("POST", &format!("/api/v1/tools/{transport}:x/call"), Some(&json!({})));
        assert_eq!(status, 502, "{refused}");
    }
    let hits = std::iter::from_fn(|| canary.accept().ok()).count();
    assert_eq!(hits, 0);
}

/// Returns the command lines of the processes that run in the gateway's working directories.
pub(super) fn workers(server: &Server) -> Vec<String> {
    let scratch = server.folder.path().canonicalize().expect("a path").join("home/scratch");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|it| fs::read_link(it.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&scratch)))
        .map(|it| fs::read_to_string(it.path().join("cmdline")).unwrap_or_default().replace('\0', " "))
        .collect()
}

/// Starts a gateway with these settings, and with the launchers and caches of the tests.
pub(super) fn with_launchers(settings: &str) -> Server {
    let folder = TempDir::new().expect("a folder");
    let root = folder.path().canonicalize().expect("a path").display().to_string();
    fs::write(folder.path().join("wharf.toml"), settings.replace("FOLDER", &root)).expect("settings");
    let path = path_with([]).into_string().expect("a PATH");
    let caches = caches().map(|(name, value)| (name, value.display().to_string()));
    let mut variables = vec![("PATH", path.as_str())];
    variables.extend(caches.iter().map(|(name, value)| (*name, value.as_str())));
    variables.push(("MACHINE_TOKEN", MACHINE_TOKEN));
    let settings = format!("{root}/wharf.toml");
    Server::start_with(folder, &["-vv", "--settings", &settings], &variables)
}

/// An npm process, registered as an agent file entry: it starts for each call and exits afterwards.
#[test]
fn a_process_is_registered_where_that_is_allowed() {
    let server = with_launchers("[grants]\nprocesses_over_rest = true\n");
    let entry = json!({ "name": "memory", "description": "d", "type": "mcp", "command": "npx",
        "server": "@modelcontextprotocol/server-memory", "lifecycle": "transient" });
    let source = register(&server, &entry);
    assert_eq!(
        (&source["transport"], &source["lifecycle"], &source["discovery"]),
        (&json!("stdio"), &json!("transient"), &json!("done")),
        "{source}"
    );
    let (status, graph) = server.ask("POST", "/api/v1/tools/memory:read_graph/call", Some(&json!({})));
    assert_eq!((status, &graph["success"]), (200, &json!(true)), "{graph}");
    let gone = (0..400).any(|_| {
        sleep(Duration::from_millis(25));
        workers(&server).is_empty()
    });
    assert!(gone, "{:?}", workers(&server));
}
