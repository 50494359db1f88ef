//! Tests the registration of sources at run time: the request body, the operator's grants, and the resulting source.

use proptest::prelude::*;
use std::collections::BTreeMap;
use wharf_config::{Endpoint, Env, Grants, Lifecycle, RestoredSource, Severity, Source, register, restore};

const CANARY: &str = "canary-9f31";

fn env() -> Env {
    let mut env = Env::bare();
    env.variables.insert("PATH".to_owned(), "/usr/bin".to_owned());
    env.variables.insert("MINE".to_owned(), CANARY.to_owned());
    env
}

fn env_with_grants() -> Env {
    let grants = Grants {
        processes_over_rest: true,
        insecure_hosts: vec!["cml-mcp".to_owned()],
        private_hosts: vec!["10.1.2.3".to_owned()],
        ..Grants::default()
    };
    Env { grants, ..env() }
}

/// Returns the codes of the errors, in the order of the body.
fn errors(body: &str, env: &Env) -> Vec<&'static str> {
    let (registration, diagnostics) = register(body, env);
    let errors = diagnostics.items().iter().filter(|it| it.severity == Severity::Error);
    let codes: Vec<&'static str> = errors.map(|it| it.code).collect();
    assert_eq!(registration.is_none(), !codes.is_empty(), "{body}: {codes:?}");
    let printed = format!("{}{}{registration:?}", diagnostics.render(false), diagnostics.to_json());
    assert!(!printed.contains(CANARY), "{printed}");
    codes
}

/// Registers and restores a source.
fn source(body: &str, env: &Env) -> Source {
    let (registration, diagnostics) = register(body, env);
    let registration = registration.unwrap_or_else(|| panic!("{}", diagnostics.render(false)));
    let (restored, diagnostics) = restore(&registration.definition, &registration.secrets, env);
    let RestoredSource { source, missing, .. } =
        restored.unwrap_or_else(|| panic!("{}", diagnostics.render(false)));
    assert!(missing.is_empty(), "{missing:?}");
    let source = source.expect("nothing is missing");
    assert_eq!(source.name.expose(), registration.name);
    assert_eq!(source.lifecycle, registration.lifecycle);
    assert!(!format!("{registration:?}{source:?}").contains(CANARY));
    source
}

/// Formats a remote endpoint as `URL Header=value …`.
fn remote(source: &Source) -> String {
    let (Endpoint::Http { remote, .. } | Endpoint::Sse(remote)) = &source.endpoint else {
        panic!("{source:?} is not remote")
    };
    let headers = remote.headers.iter().map(|(name, value)| format!(" {name}={}", value.expose()));
    remote.url.to_string() + &headers.collect::<String>()
}

#[test]
fn remote_registrations_become_endpoints() {
    for (body, expected) in [
        (
            r#"{"name": "CML MCP Server", "url": "http://cml-mcp:9000", "source_type": "mcp",
                "mcp_server_url": "http://cml-mcp:9000", "mcp_transport_type": "streamable_http",
                "mcp_env_vars": {"API_KEY": "optional-auth-header"}}"#,
            "http://cml-mcp:9000/mcp X-API-Key=optional-auth-header",
        ),
        (r#"{"name": "a", "url": "https://mcp.example", "source_type": "mcp"}"#, "https://mcp.example/mcp"),
        (
            r#"{"name": "a", "mcp_server_url": "https://mcp.example/x", "mcp_env_vars":
                {"Authorization": "Bearer ${x}", "MCP_HEADER_X_TEAM_ID": "7", "GONE": null}}"#,
            "https://mcp.example/x Authorization=Bearer ${x} X-TEAM-ID=7",
        ),
        (r#"{"name": "a", "mcp_server_url": "https://10.1.2.3/mcp"}"#, "https://10.1.2.3/mcp"),
        (r#"{"name": "a", "mcp_server_url": "http://127.0.0.1:9/mcp"}"#, "http://127.0.0.1:9/mcp"),
        (
            r#"{"name": "a", "type": "mcp", "server": "s", "transport": "sse", "url": "https://mcp.example/sse",
                "headers": {"Authorization": "Bearer canary-9f31"}}"#,
            "https://mcp.example/sse Authorization=Bearer canary-9f31",
        ),
    ] {
        // A name without a value in the definition is not known to be optional, so the test removes it.
        let body = body.replace(", \"GONE\": null", "");
        assert_eq!(remote(&source(&body, &env_with_grants())), expected);
    }
}

#[test]
fn secrets_are_stored_separately() {
    let body = r#"{"name": "a", "mcp_server_url": "https://mcp.example/",
        "mcp_env_vars": {"API_KEY": "canary-9f31", "Authorization": "x"}}"#;
    let (registration, _) = register(body, &env());
    let registration = registration.expect("it is fine");
    assert_eq!(registration.lifecycle, Lifecycle::Singleton);
    let definition: serde_json::Value = registration.definition.parse().expect("JSON");
    assert_eq!(
        definition,
        serde_json::json!({
            "name": "a", "mcp_server_url": "https://mcp.example/",
            "mcp_env_vars": { "API_KEY": null, "Authorization": null },
        })
    );
    let names: Vec<&String> = registration.secrets.keys().collect();
    assert_eq!(names, ["API_KEY", "Authorization"]);
    assert_eq!(registration.secrets["API_KEY"], CANARY);

    let kept = BTreeMap::from([("API_KEY".to_owned(), "k".to_owned())]);
    let (restored, _) = restore(&registration.definition, &kept, &env());
    let restored = restored.expect("it can be read");
    assert_eq!(restored.missing, ["Authorization"]);
    assert!(restored.source.is_none());
}

#[test]
fn invalid_registrations_are_rejected() {
    let entry = |more: &str| format!(r#"{{"name": "a", "type": "mcp", "server": "pkg", {more}}}"#);
    let source = |more: &str| format!(r#"{{"name": "a", "source_type": "mcp", {more}}}"#);
    for (body, expected) in [
        ("[]".to_owned(), "K-02"),
        ("{".to_owned(), "Y-01"),
        (r#"{"name": "a", "name": "b", "mcp_server_url": "https://a.example/"}"#.to_owned(), "Y-02"),
        (entry(r#""command": "npx""#), "stdio_registration_disabled"),
        (entry(r#""command": "bash""#), "stdio_registration_disabled"),
        (r#"{"name": "a", "type": "mcp", "server": "@scope/pkg"}"#.to_owned(), "stdio_registration_disabled"),
        (entry(r#""transport": "http", "url": "https://10.0.0.1/""#), "V-07"),
        (entry(r#""transport": "http", "url": "https://169.254.169.254/""#), "V-07"),
        (entry(r#""transport": "websocket", "url": "wss://192.168.0.1/""#), "V-07"),
        (entry(r#""transport": "http", "url": "https://a.example/", "envFile": ".env""#), "R-01"),
        (entry(r#""transport": "http", "url": "https://a.example/${MINE}""#), "R-01"),
        (entry(r#""transport": "http", "url": "https://a.example/", "headers": {"X": 1}"#), "V-13"),
        (entry(r#""url": "https://a.example/""#), "V-12"),
        (entry(r#""transport": "http", "url": "https://a.example/", "colour": 1"#), "K-01"),
        (source(r#""mcp_server_url": "https://a.example/", "mcp_colour": 1"#), "K-01"),
        (source(r#""mcp_server_url": 7"#), "V-13"),
        (source(r#""mcp_server_url": "ftp://a.example/""#), "V-07"),
        (source(r#""mcp_server_url": "https://a.example/", "mcp_transport_type": "stdio""#), "R-02"),
        (source(r#""mcp_server_url": "https://a.example/", "mcp_args": ["x"]"#), "R-02"),
        (source(r#""mcp_server_url": "https://a.example/", "mcp_plugin_dir": "/x""#), "R-02"),
        (source(r#""mcp_server_url": "https://a.example/", "mcp_lifecycle_mode": "forever""#), "V-13"),
        (
            source(r#""mcp_server_url": "https://a.example/", "mcp_env_vars": {"TOKEN": "canary-9f31"}"#),
            "R-03",
        ),
        (source(r#""mcp_server_url": "https://a.example/", "mcp_env_vars": {"API_KEY": "a\nb"}"#), "V-13"),
        (source(r#""url": "mcp://plugin""#), "R-02"),
        (source(r#""mcp_env_vars": {}"#), "R-02"),
        (r#"{"name": "a", "source_type": "openapi", "url": "https://a.example/"}"#.to_owned(), "R-02"),
        (r#"{"source_type": "mcp", "url": "https://a.example/"}"#.to_owned(), "V-01"),
        (format!(r#"{{"name": "{}", "mcp_server_url": "https://a.example/"}}"#, "x".repeat(129)), "V-01"),
    ] {
        let found = errors(&body, &env());
        assert!(found.first() == Some(&expected), "{body}: {found:?}");
    }
}

#[test]
fn processes_need_a_grant_and_follow_the_file_rules() {
    let entry = |more: &str| format!(r#"{{"name": "a", "type": "mcp", "server": "pkg", {more}}}"#);
    let fine = entry(r#""command": "npx", "args": ["-y", "pkg"], "env": {"KEY": "canary-9f31 ${x}"}"#);
    let Endpoint::Stdio(launch) = source(&fine, &env_with_grants()).endpoint else { panic!("a process") };
    assert_eq!(launch.env.0["KEY"].value.expose(), "canary-9f31 ${x}");
    assert!(!launch.env.0.contains_key("MINE"));
    for (more, expected) in [
        (r#""command": "bash""#, "V-05"),
        (r#""command": "/bin/npx""#, "V-05"),
        (r#""command": "npx ""#, "V-05"),
        (r#""command": "NPX""#, "V-05"),
        (r#""command": "npx\n""#, "V-05"),
        (r#""command": "npx", "args": ["-c", "touch x"]"#, "C-02"),
        (r#""command": "uvx", "args": ["python", "-c", "x"]"#, "C-03"),
        (r#""command": "npx", "env": {"PATH": "x"}"#, "C-05"),
        (r#""command": "npx", "env": {"NODE_OPTIONS": "x"}"#, "C-05"),
        (r#""command": "npx", "inherit_env": ["MINE"]"#, "R-01"),
        (r#""transport": "http", "url": "https://h/", "auth": {"token_file": "/etc/passwd"}"#, "R-01"),
        (r#""command": "docker", "args": ["cp", "a", "b"]"#, "C-02"),
        (r#""command": "docker", "args": ["run", "-v", "/:/h", "img"]"#, "C-04"),
        (r#""command": "docker", "args": ["run", "-v", "./x:/h", "img"]"#, "C-04"),
        (r#""command": "docker", "args": ["run", "--env-file", "./x", "img"]"#, "C-04"),
        (r#""command": "docker", "args": ["run", "--privileged", "img"]"#, "C-02"),
    ] {
        let found = errors(&entry(more), &env_with_grants());
        assert_eq!(found, [expected], "{more}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is sent, there is a registration or an error, and a registration can be restored.
    #[test]
    fn any_body_gives_a_registration_or_an_error(words in proptest::collection::vec(word(), 0..24), noise in ".{0,40}") {
        for body in [format!("{{{}}}", words.join(",")), noise.clone(), words.concat()] {
            let (registration, diagnostics) = register(&body, &env_with_grants());
            prop_assert_eq!(registration.is_some(), !diagnostics.has_errors());
            let printed = format!("{}{}{registration:?}", diagnostics.render(false), diagnostics.to_json());
            prop_assert!(!printed.contains(CANARY), "{}", printed);
            if let Some(registration) = registration {
                let (restored, diagnostics) = restore(&registration.definition, &registration.secrets, &env_with_grants());
                prop_assert!(restored.is_some(), "{}: {}", body, diagnostics.render(false));
            }
        }
    }
}

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        r#""name": "a""#,
        r#""name": 7"#,
        r#""type": "mcp""#,
        r#""server": "pkg""#,
        r#""source_type": "mcp""#,
        r#""transport": "http""#,
        r#""transport": "stdio""#,
        r#""command": "npx""#,
        r#""command": "docker""#,
        r#""args": ["-y", "pkg"]"#,
        r#""args": {}"#,
        r#""url": "https://a.example/""#,
        r#""url": "mcp://a""#,
        r#""headers": {"X": "canary-9f31"}"#,
        r#""headers": {"Y\n": "canary-9f31", "X": null}"#,
        r#""env": {"A": "canary-9f31"}"#,
        r#""env": ["canary-9f31"]"#,
        r#""mcp_env_vars": {"API_KEY": "canary-9f31"}"#,
        r#""mcp_env_vars": {"API_KEY": ["canary-9f31"]}"#,
        r#""mcp_server_url": "https://a.example""#,
        r#""mcp_server_url": "http://10.0.0.1""#,
        r#""mcp_plugin_dir": "/nowhere""#,
        r#""mcp_lifecycle_mode": "transient""#,
        r#""mcp_transport_type": "streamable_http""#,
    ])
}
