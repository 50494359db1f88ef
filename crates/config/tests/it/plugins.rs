//! Tests plugins: which folders they may be in, which scripts they may run, and the sources of their variables.

use crate::{
    manifests::argv,
    plugin_folder::{Plugins, set_mode},
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink, path::Path};
use wharf_config::{Endpoint, Env, Launch, RestoredSource, register, restore};

const SCRIPT: &str =
    r#"{"name": "p", "packages": [{"runtime": "python", "command": ["python", "server.py", "--x"]}]}"#;

fn body(folder: &Path, more: Value) -> String {
    let mut body = json!({ "name": "it", "source_type": "mcp", "mcp_plugin_dir": folder });
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    body.to_string()
}

/// Returns the launch that a registration produces, or the first error.
fn launch(body: &str, env: &Env) -> Result<Launch, String> {
    let (registration, diagnostics) = register(body, env);
    let Some(registration) = registration else {
        let first = &diagnostics.items()[0];
        return Err(format!("{} {}", first.code, first.message));
    };
    let (restored, _) = restore(&registration.definition, &registration.secrets, env);
    match restored.expect("it was registered just now") {
        RestoredSource { source: Some(source), .. } => match source.endpoint {
            Endpoint::Stdio(launch) => Ok(launch),
            other => panic!("{other:?}"),
        },
        RestoredSource { missing, .. } => Err(format!("missing {}", missing.join(" "))),
    }
}

#[test]
fn plugin_folder_must_be_under_a_root_and_not_writable_by_others() {
    let plugins = Plugins::new();
    let env = plugins.env();
    let fine = plugins.write("fine", "plugin.json", SCRIPT);
    plugins.write("fine", "server.py", "");
    let outside = Plugins::new();
    let elsewhere = outside.write("evil", "plugin.json", SCRIPT);
    symlink(&elsewhere, plugins.root().join("link")).expect("a link");
    let sibling = format!("{}-sibling", plugins.root().display());
    let open = plugins.write("open", "plugin.json", SCRIPT);
    set_mode(&open, 0o777);
    let writable = plugins.write("writable", "plugin.json", SCRIPT);
    set_mode(&writable.join("plugin.json"), 0o666);
    let linked = plugins.write("linked", "plugin.json", SCRIPT);
    symlink("/etc/passwd", linked.join("server.py")).expect("a link");
    let group = plugins.write("group", "plugin.json", SCRIPT);
    plugins.write("group", "server.py", "");
    set_mode(&group.join("server.py"), 0o664);
    let broken = plugins.write("broken", "plugin.json", "{\n  \"packages\": [\n");
    let empty = plugins.root().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let long = plugins.write("long", "plugin.json", &" ".repeat(1024 * 1024 + 1));

    let script = fine.join("server.py").display().to_string();
    assert_eq!(
        launch(&body(&fine, json!({})), &env).map(|it| argv(&it)),
        Ok(vec!["python".into(), script, "--x".into()])
    );
    for (folder, expected) in [
        (
            format!("{}/../fine", fine.display()),
            "R-04 MCPConfigError: 'mcp_plugin_dir' is not an absolute path",
        ),
        ("fine".to_owned(), "R-04 MCPConfigError: 'mcp_plugin_dir' is not an absolute path"),
        (format!("{}\0", fine.display()), "R-04 MCPConfigError: 'mcp_plugin_dir' is not an absolute path"),
        (elsewhere.display().to_string(), "R-04 MCPConfigError: 'mcp_plugin_dir' is not under any"),
        (
            plugins.root().join("link").display().to_string(),
            "R-04 MCPConfigError: 'mcp_plugin_dir' is not under any",
        ),
        (sibling, "R-04 MCPConfigError: 'mcp_plugin_dir' is not under any"),
        ("/etc".to_owned(), "R-04 MCPConfigError: 'mcp_plugin_dir' is not under any"),
        ("/nowhere/at/all".to_owned(), "R-04 MCPConfigError: 'mcp_plugin_dir' is not under any"),
        (open.display().to_string(), "R-04 MCPConfigError: 'mcp_plugin_dir' can be written by others"),
        (
            fine.join("plugin.json").display().to_string(),
            "R-04 MCPConfigError: 'mcp_plugin_dir' is not a folder",
        ),
        (empty.display().to_string(), "R-04 MCPConfigError: 'mcp_plugin_dir' has neither"),
        (
            writable.display().to_string(),
            "R-05 MCPConfigError: the plugin's manifest cannot be used: 'plugin.json' can be",
        ),
        (
            broken.display().to_string(),
            "R-05 MCPConfigError: the plugin's manifest cannot be used: 'plugin.json' cannot be read: line 3",
        ),
        (
            long.display().to_string(),
            "R-05 MCPConfigError: the plugin's manifest cannot be used: 'plugin.json' is larger",
        ),
        (
            linked.display().to_string(),
            "R-06 MCPConfigError: a plugin's script is outside the plugin's folder",
        ),
        (group.display().to_string(), "R-06 MCPConfigError: a plugin's script can be written by others"),
    ] {
        let found = launch(&body(Path::new(&folder), json!({})), &env);
        assert!(found.as_ref().is_err_and(|it| it.starts_with(expected)), "{folder:?}: {found:?}");
    }
    let closed = Env { grants: Default::default(), ..plugins.env() };
    let found = launch(&body(&elsewhere, json!({})), &closed).expect_err("it is off by default");
    assert!(found.starts_with("stdio_registration_disabled"), "{found}");
}

#[test]
fn only_scripts_in_the_plugin_folder_run() {
    for (runtime, command, expected) in [
        ("node", json!(["server.js"]), Ok("node")),
        ("python", json!(["-c", "import os"]), Err("R-06")),
        ("python", json!(["-m", "http.server"]), Err("R-06")),
        ("node", json!(["-e", "1"]), Err("R-06")),
        ("node", json!(["node"]), Err("R-06")),
        ("node", json!(["../server.js"]), Err("R-06")),
        ("node", json!(["/bin/sh"]), Err("R-06")),
        ("node", json!(["missing.js"]), Err("R-06")),
        ("bash", json!(["server.js"]), Err("R-05")),
        ("npx", json!(["-c", "x"]), Err("C-02")),
        ("npx", json!(["@example/x", "--own"]), Ok("npx")),
        ("docker", json!(["example/image", "serve"]), Ok("docker")),
        ("docker", json!(["run", "--privileged", "example/image"]), Err("C-02")),
    ] {
        let plugins = Plugins::new();
        let manifest = json!({ "packages": [{ "runtime": runtime, "command": command }] });
        let folder = plugins.write("p", "plugin.json", &manifest.to_string());
        plugins.write("p", "server.js", "");
        let found = launch(&body(&folder, json!({})), &plugins.env());
        match (&found, expected) {
            (Ok(launch), Ok(program)) => assert_eq!(argv(launch)[0], program),
            (Err(found), Err(code)) => assert!(found.starts_with(code), "{command}: {found}"),
            _ => panic!("{command}: {found:?}"),
        }
    }
}

#[test]
fn registration_overrides_the_manifest() {
    let plugins = Plugins::new();
    let manifest = json!({ "packages": [
        { "registryType": "npm", "identifier": "@example/x" }, { "registryType": "pypi", "identifier": "x-server" },
    ] });
    let folder = plugins.write("p", "server.json", &manifest.to_string());
    let mut env = plugins.env();
    env.grants.commands.push("/opt/own/server".into());
    for (more, expected) in [
        (json!({}), "npx -y @example/x"),
        (json!({ "mcp_runtime_hint": "uvx" }), "uvx x-server"),
        (json!({ "mcp_args": ["--a", "b"] }), "npx -y @example/x --a b"),
        (json!({ "mcp_command": "/opt/own/server", "mcp_args": ["--a"] }), "/opt/own/server --a"),
        (json!({ "mcp_command": ["npx", "other"], "mcp_args": ["--a"] }), "npx -y other --a"),
        (json!({ "mcp_command": "/opt/own/other" }), "V-05"),
        (json!({ "mcp_command": "bash" }), "V-05"),
        (json!({ "mcp_runtime_hint": "docker" }), "R-05"),
        (json!({ "mcp_runtime_hint": "bash" }), "V-13"),
        (json!({ "mcp_transport_type": "sse" }), "npx -y @example/x"),
        (json!({ "mcp_transport_type": "streamable_http" }), "npx -y @example/x"),
        (json!({ "mcp_transport_type": "carrier pigeon" }), "V-13"),
        (json!({ "mcp_server_url": "https://a.example/" }), "R-02"),
        (json!({ "mcp_env_vars": { "LD_PRELOAD": "x" } }), "C-05"),
    ] {
        let found = match launch(&body(&folder, more.clone()), &env) {
            Ok(launch) => argv(&launch).join(" "),
            Err(found) => found,
        };
        assert!(found == expected || found.starts_with(&format!("{expected} ")), "{more}: {found}");
    }
}

#[test]
fn variables_come_from_the_first_layer_that_has_them() {
    let plugins = Plugins::new();
    let declared = ["A", "B", "C", "D"].map(|it| json!({ "name": it, "required": true }));
    let manifest = json!({ "packages": [{
        "runtime": "npx", "command": ["@example/x"], "environment_variables": declared,
    }] });
    let folder = plugins.write("p", "plugin.json", &manifest.to_string());
    let body = body(&folder, json!({ "mcp_env_vars": { "B": "registered", "C": "registered" } }));
    let mut env = plugins.env();
    assert_eq!(launch(&body, &env).expect_err("some are missing"), "missing A D");
    let file = plugins.write("secrets", "env", "A=file\nB=file\nother line").join("env");
    env.grants.secrets_file = Some(file.clone());
    let found = launch(&body, &env).expect_err("others can read it");
    assert_eq!(found, "R-07 ConfigError: the operator's secrets file can be read by others");
    set_mode(&file, 0o600);
    let found = launch(&body, &env).expect_err("it is broken");
    assert!(
        found.starts_with("R-07 ConfigError: the operator's secrets file cannot be read: line 3"),
        "{found}"
    );
    fs::write(&file, "A=file\nB=file\n").expect("it is ours");
    for name in ["A", "C", "D", "E"] {
        env.variables.insert(name.to_owned(), "machine".to_owned());
    }
    let launch = launch(&body, &env).expect("nothing is missing");
    let found: Vec<(&str, &str)> =
        launch.env.0.iter().map(|(name, it)| (name.as_str(), it.value.expose())).collect();
    assert_eq!(
        found,
        [("A", "file"), ("B", "file"), ("C", "registered"), ("D", "machine"), ("PATH", "/usr/bin:/bin")]
    );
    assert!(!format!("{launch:?}").contains("machine"), "{launch:?}");
}
