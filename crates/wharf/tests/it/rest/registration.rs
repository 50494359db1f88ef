//! Tests sources that are registered while the gateway runs.

use super::{disabled_tools::mcp, upstream::Upstream};
use crate::serve::server::Server;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt, sync::atomic::Ordering};
use tempfile::TempDir;

/// Secret that must reach only its server.
const CANARY: &str = "canary-4f1c9e-secret-value";
const OTHER: &str = "canary-77aa02-rotated-value";

fn server() -> Server {
    Server::start(&["-v"])
}

/// Builds a remote server in the format of the tools provider.
fn remote(upstream: &Upstream) -> Value {
    json!({
        "name": "Far MCP",
        "url": format!("http://{}", upstream.address),
        "source_type": "mcp",
        "mcp_server_url": format!("http://{}", upstream.address),
        "mcp_transport_type": "streamable_http",
        "mcp_env_vars": { "API_KEY": CANARY },
    })
}

fn register(server: &Server, body: &Value) -> Value {
    let (status, source) = server.ask("POST", "/api/v1/sources", Some(body));
    assert_eq!(status, 201, "{source}");
    source
}

fn counts(report: &Value) -> [&Value; 4] {
    ["tools_discovered", "tools_created", "tools_updated", "tools_deprecated"].map(|it| &report[it])
}

fn call(server: &Server) -> (u16, Value) {
    server.ask("POST", "/api/v1/tools/Far%20MCP:slow/call", Some(&json!({ "arguments": {} })))
}

#[test]
fn remote_server_is_registered_called_and_removed() {
    let upstream = Upstream::start();
    let server = server();
    let source = register(&server, &remote(&upstream));
    let id = source["id"].as_str().expect("an id").to_owned();
    for (key, expected) in [
        ("name", json!("Far MCP")),
        ("origin", json!("rest")),
        ("state", json!("ready")),
        ("health", json!("healthy")),
        ("missing", json!([])),
        ("discovery", json!("done")),
        ("transport", json!("http")),
        ("epoch", json!(1)),
        ("tools", json!(2)),
    ] {
        assert_eq!(source[key], expected, "{key}: {source}");
    }
    assert_eq!(counts(&source["inventory"]), [&json!(2), &json!(2), &json!(0), &json!(0)], "{source}");
    assert_eq!(call(&server).0, 200);
    let headers = upstream.heard.headers();
    assert!(headers.contains("x-api-key") && headers.contains(CANARY), "{headers}");
    let listed = mcp(&server, "tools/list", json!({})).to_string();
    assert!(listed.contains("Far-MCP__slow") && listed.contains("todo__create_todo"), "{listed}");

    let (_, all) = server.ask("GET", "/api/v1/sources", None);
    let origins: Vec<&Value> =
        all["items"].as_array().expect("a list").iter().map(|it| &it["origin"]).collect();
    assert_eq!(origins, [&json!("builtin"), &json!("rest")], "{all}");
    for word in [id.as_str(), "Far%20MCP"] {
        assert_eq!(server.ask("GET", &format!("/api/v1/sources/{word}"), None).1["id"], json!(id));
    }
    // The name is taken, by another registered source or by the agent file.
    assert_eq!(server.ask("POST", "/api/v1/sources", Some(&remote(&upstream))).0, 409);
    let mut body = remote(&upstream);
    body["name"] = json!("todo");
    let (status, taken) = server.ask("POST", "/api/v1/sources", Some(&body));
    assert_eq!(status, 409, "{taken}");
    assert!(taken["detail"].to_string().contains("the agent file has a source of this name"), "{taken}");
    for method in ["DELETE", "PATCH"] {
        let change = json!({ "enabled": false });
        let (status, refused) = server.ask(method, "/api/v1/sources/todo", Some(&change));
        assert_eq!(status, 409, "{refused}");
        assert!(refused["hint"].to_string().contains("change it there"), "{refused}");
    }

    // The source and its secret survive a restart.
    let mut server = server;
    server.child.kill().expect("it ran");
    let server = Server::start_in(server.into_folder(), &["-v"]);
    assert_eq!(call(&server).0, 200);
    let (_, again) = server.ask("GET", &format!("/api/v1/sources/{id}"), None);
    assert_eq!(
        (&again["epoch"], &again["inventory_hash"]),
        (&json!(1), &source["inventory_hash"]),
        "{again}"
    );

    // Disabled tools are forgotten when the source is removed.
    let tool = "/api/v1/tools/Far%20MCP:slow";
    assert_eq!(server.ask("PATCH", tool, Some(&json!({ "enabled": false, "reason": "no" }))).0, 200);
    assert_eq!(call(&server).0, 403);
    let (status, _) = server.ask("DELETE", &format!("/api/v1/sources/{id}"), None);
    assert_eq!(status, 204);
    assert_eq!(server.ask("GET", &format!("/api/v1/sources/{id}"), None).0, 404);
    assert_eq!(server.ask("DELETE", &format!("/api/v1/sources/{id}"), None).0, 404);
    assert_eq!(call(&server).0, 404);
    assert_eq!(counts(&register(&server, &remote(&upstream))["inventory"])[1], &json!(2));
    assert_eq!(call(&server).0, 200);
}

#[test]
fn missing_tool_is_deprecated_until_listed_again() {
    let upstream = Upstream::start();
    let server = server();
    let source = register(&server, &remote(&upstream));
    let refresh = || {
        let (status, report) = server.ask("POST", "/api/v1/sources/Far%20MCP/refresh", None);
        assert_eq!(status, 200, "{report}");
        report
    };
    let same = refresh();
    assert_eq!(counts(&same), [&json!(2), &json!(0), &json!(0), &json!(0)], "{same}");
    assert_eq!(same["inventory_hash"], source["inventory_hash"]);
    assert!(same["duration_ms"].as_f64().is_some_and(|it| it > 0.0), "{same}");
    upstream.heard.silent.store(true, Ordering::Relaxed);
    let fewer = refresh();
    assert_eq!(counts(&fewer), [&json!(1), &json!(0), &json!(0), &json!(1)], "{fewer}");
    assert_ne!(fewer["inventory_hash"], source["inventory_hash"]);
    assert_eq!(server.ask("GET", "/api/v1/tools/Far%20MCP:chatty", None).0, 404);
    let deprecated = || server.ask("GET", "/api/v1/sources/Far%20MCP", None).1["deprecated"].clone();
    assert_eq!(deprecated(), json!(["chatty"]));
    upstream.heard.silent.store(false, Ordering::Relaxed);
    let back = refresh();
    assert_eq!(counts(&back), [&json!(2), &json!(0), &json!(1), &json!(0)], "{back}");
    assert_eq!((&back["inventory_hash"], deprecated()), (&source["inventory_hash"], json!([])));
    let (_, shown) = server.ask("GET", "/api/v1/sources/Far%20MCP", None);
    assert_eq!(shown["inventory_hash"], source["inventory_hash"]);

    // Works for a source from the agent file as well, and by name.
    let (status, report) = server.ask("POST", "/api/v1/sources/todo/refresh", None);
    assert_eq!((status, &report["tools_discovered"], &report["tools_updated"]), (200, &json!(5), &json!(0)));
    assert_eq!(server.ask("POST", "/api/v1/sources/nobody/refresh", None).0, 404);
}

#[test]
fn stale_epoch_is_rejected() {
    let upstream = Upstream::start();
    let server = server();
    register(&server, &remote(&upstream));
    let path = "/api/v1/sources/Far%20MCP";
    let patch = |change: Value| server.ask("PATCH", path, Some(&change));
    let (status, off) = patch(json!({ "enabled": false, "epoch": 1 }));
    assert_eq!(
        (status, &off["state"], &off["enabled"], &off["epoch"]),
        (200, &json!("disabled"), &json!(false), &json!(2))
    );
    let (status, refused) = call(&server);
    assert_eq!((status, &refused["type"]), (503, &json!("MCPConfigError")), "{refused}");
    assert!(refused["detail"].to_string().contains("`Far MCP` is disabled"), "{refused}");
    let arguments = json!({ "name": "Far-MCP__slow", "arguments": {} });
    let refused = mcp(&server, "tools/call", arguments);
    assert!(refused["error"]["message"].to_string().contains("is disabled"), "{refused}");
    assert_eq!(server.ask("POST", &format!("{path}/refresh"), None).0, 503);

    let (status, stale) = patch(json!({ "enabled": true, "epoch": 1 }));
    assert_eq!(status, 409, "{stale}");
    assert!(stale["hint"].to_string().contains("its epoch is 2 now"), "{stale}");
    let token = format!("Authorization: Bearer {}", server.token);
    let with = |epoch: &str| {
        let epoch = format!("If-Match: {epoch}");
        let headers: &[&str] = &[&token, &epoch, "Content-Type: application/json"];
        server.ask_with("PATCH", path, headers, Some(&json!({ "enabled": true }))).0
    };
    assert_eq!([with("\"1\""), with("two"), with("2"), with("\"2\""), with("*")], [409, 400, 400, 200, 200]);
    assert_eq!(call(&server).0, 200);

    // A new secret takes effect at once and replaces the old one.
    let before = upstream.heard.headers().matches(CANARY).count();
    let change = json!({ "env": { "API_KEY": OTHER }, "description": "Far away", "lifecycle": "transient" });
    let (status, changed) = patch(change);
    assert_eq!(
        (status, &changed["description"], &changed["lifecycle"]),
        (200, &json!("Far away"), &json!("transient"))
    );
    assert_eq!(call(&server).0, 200);
    let headers = upstream.heard.headers();
    assert!(headers.contains(OTHER), "{headers}");
    let after = headers.matches(CANARY).count();
    assert!(before > 0 && after == before, "{before} {after}");
    for body in [
        json!({}),
        json!({ "epoch": 4 }),
        json!({ "enabled": "yes" }),
        json!({ "name": "x" }),
        json!({ "lifecycle": "forever" }),
        json!({ "env": { "X": 1 } }),
        json!({ "description": "a\nb" }),
        json!({ "env": { "NOT_A_HEADER": "x" } }),
    ] {
        assert_eq!(patch(body.clone()).0, 400, "{body}");
    }
}

/// One task merges the agent file and the registered sources, so neither change loses the other.
#[test]
fn changed_agent_file_keeps_registered_sources() {
    let upstream = Upstream::start();
    let folder = TempDir::new().expect("a folder");
    let entry = |name: &str| {
        format!("tools:\n  - {{name: {name}, description: d, type: mcp, server: 'builtin:todo'}}\n")
    };
    let file = folder.path().join("agent.yaml");
    fs::write(&file, entry("first")).expect("a file");
    let server = Server::start_in(folder, &["-v"]);
    register(&server, &remote(&upstream));
    let names = || {
        let (_, all) = server.ask("GET", "/api/v1/sources", None);
        let names = all["items"].as_array().expect("a list").iter().map(|it| it["name"].to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    let becomes = |expected: &str| {
        let is_so = |_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            names() == expected
        };
        assert!((0..200).any(is_so), "{} instead of {expected}", names());
    };
    fs::write(&file, entry("the_second")).expect("a file");
    becomes(r#""the_second" "Far MCP""#);
    assert_eq!(call(&server).0, 200);
    let mut other = remote(&upstream);
    other["name"] = json!("another");
    register(&server, &other);
    becomes(r#""the_second" "Far MCP" "another""#);
    // If both use a name, the agent file wins.
    fs::write(&file, entry("another")).expect("a file");
    becomes(r#""another" "Far MCP""#);
    let (_, shown) = server.ask("GET", "/api/v1/sources/another", None);
    assert_eq!(shown["origin"], "builtin", "{shown}");
    fs::write(&file, entry("the_third_one")).expect("a file");
    becomes(r#""the_third_one" "Far MCP" "another""#);
}

/// If the encryption key is missing, the source reports that and receives no requests.
#[test]
fn source_without_encryption_key_is_not_ready() {
    let upstream = Upstream::start();
    let server = server();
    register(&server, &remote(&upstream));
    let key = server.folder.path().join("home/secrets.key");
    let mode = fs::metadata(&key).expect("a key").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let restart = |mut server: Server| {
        server.child.kill().expect("it ran");
        Server::start_in(server.into_folder(), &["-v"])
    };
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("a mode");
    let server = restart(server);
    let (status, refused) = call(&server);
    assert_eq!(status, 503, "{refused}");
    assert!(refused["detail"].to_string().contains("can be read by others"), "{refused}");
    fs::remove_file(&key).expect("it was there");
    let server = restart(server);
    let (_, shown) = server.ask("GET", "/api/v1/sources/Far%20MCP", None);
    assert_eq!((&shown["state"], &shown["tools"]), (&json!("not_ready"), &json!(0)), "{shown}");
    let (_, why) = server.ask("GET", "/api/v1/tools/Far%20MCP:slow/why", None);
    let stopped = &why["stopped_by"];
    assert_eq!((&stopped["layer"], &stopped["code"]), (&json!("registration"), &json!("not_ready")), "{why}");
    let (status, refused) = call(&server);
    assert_eq!(status, 503, "{refused}");
    assert!(
        refused["detail"].to_string().contains("the encryption key of its secrets is missing"),
        "{refused}"
    );
    let (status, fixed) =
        server.ask("PATCH", "/api/v1/sources/Far%20MCP", Some(&json!({ "env": { "API_KEY": OTHER } })));
    assert_eq!((status, &fixed["state"]), (200, &json!("ready")), "{fixed}");
    assert_eq!(call(&server).0, 200);
}

/// All mistakes are reported at once, with their positions and without values.
#[test]
fn invalid_registration_reports_every_error() {
    let server = server();
    let body = json!({ "name": "x", "source_type": "mcp", "mcp_server_url": "http://10.0.0.1/mcp", "colour": "red",
        "mcp_env_vars": { "API_KEY": CANARY, "WRONG": CANARY } });
    let (status, problem) = server.ask("POST", "/api/v1/sources", Some(&body));
    assert_eq!((status, &problem["type"]), (400, &json!("ConfigError")), "{problem}");
    let problems = problem["problems"].as_array().expect("problems");
    assert!(!problems.is_empty() && !problem.to_string().contains(CANARY), "{problem}");
    for one in problems {
        assert!(one["code"].is_string() && one["message"].is_string() && one["line"].is_u64(), "{one}");
    }
    assert!(!server.log().contains(CANARY));
}
