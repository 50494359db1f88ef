//! Tests realistic manifests: the command line that each produces, or the error.
//!
//! Each file in `tests/manifests` contains a manifest, its inputs and the expected result. `vscode` is the command
//! line that VS Code produces for the same manifest after its prompts are answered. Ours is the same except for npx's
//! `-y`, unless `differs` gives a reason; then `argv` has our command line.

use crate::plugin_folder::Plugins;
use proptest::prelude::*;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use wharf_config::{Endpoint, Launch, Lifecycle, Program, RestoredSource, register, restore, suggest_entry};

pub(crate) fn argv(launch: &Launch) -> Vec<String> {
    let program = match &launch.program {
        Program::Launcher(it) => it.as_str().to_owned(),
        Program::Interpreter(it) => it.as_str().to_owned(),
        Program::Granted(path) => path.display().to_string(),
    };
    [program].into_iter().chain(launch.args.iter().map(|it| it.value.expose().to_owned())).collect()
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").map(|it| it.expect("an entry").path()).collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// However broken a manifest is, it is an entry or a reason.
    #[test]
    fn broken_manifest_gives_an_entry_or_a_reason(file in 0_usize..20, at in 0_usize..2_000, cut in 0_usize..40, put in "[\\[\\]{}\",:0a-z$\\u{e9}]{0,6}") {
        let case: Value = serde_json::from_slice(&fs::read(&files()[file]).expect("a case")).expect("JSON");
        let text: Vec<char> = case["manifest"].to_string().chars().collect();
        let at = at % text.len();
        let rest = &text[(at + cut).min(text.len())..];
        let broken: String = text[..at].iter().copied().chain(put.chars()).chain(rest.iter().copied()).collect();
        let found = suggest_entry(broken.as_bytes());
        prop_assert!(found.is_ok() || found.is_err_and(|it| !it.is_empty()));
    }
}

#[test]
fn manifests_give_the_expected_command_lines() {
    let files = files();
    assert!(files.len() >= 20, "{}", files.len());
    for file in files {
        let case: Value = serde_json::from_slice(&fs::read(&file).expect("a case")).expect("JSON");
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        check(&name, &case);
    }
}

fn check(name: &str, case: &Value) {
    let plugins = Plugins::new();
    let file = case["file"].as_str().unwrap_or("server.json");
    let folder = plugins.write("plugin", file, &case["manifest"].to_string());
    let body = serde_json::json!({
        "name": "it", "source_type": "mcp", "mcp_plugin_dir": folder, "mcp_env_vars": case["mcp_env_vars"],
    });
    let (registration, diagnostics) = register(&body.to_string(), &plugins.env());
    if let Some(refused) = case["refused"].as_str() {
        assert!(diagnostics.to_json().to_string().contains(refused), "{name}: {}", diagnostics.to_json());
        assert!(registration.is_none(), "{name}");
        return;
    }
    let registration = registration.unwrap_or_else(|| panic!("{name}: {}", diagnostics.render(false)));
    let given = case["mcp_env_vars"].as_object();
    for value in given.into_iter().flat_map(|it| it.values()).filter_map(Value::as_str) {
        assert!(value.len() < 3 || !registration.definition.contains(value), "{name}: {registration:?}");
    }
    let (restored, diagnostics) = restore(&registration.definition, &registration.secrets, &plugins.env());
    let RestoredSource { source, missing, .. } =
        restored.unwrap_or_else(|| panic!("{name}: {}", diagnostics.render(false)));
    if let Some(expected) = case["missing"].as_array() {
        assert_eq!(serde_json::json!(missing), serde_json::json!(expected), "{name}");
        assert!(source.is_none(), "{name}");
        return;
    }
    assert!(missing.is_empty(), "{name}: {missing:?}");
    let source = source.expect("nothing is missing");
    assert_eq!(source.lifecycle, Lifecycle::Transient, "{name}");
    match &source.endpoint {
        Endpoint::Stdio(launch) => check_process(name, case, launch),
        Endpoint::Http { remote, .. } | Endpoint::Sse(remote) => {
            let headers: BTreeMap<&str, &str> =
                remote.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
            assert_eq!(remote.url.as_str(), case["url"], "{name}");
            let expected =
                if case["headers"].is_null() { serde_json::json!({}) } else { case["headers"].clone() };
            assert_eq!(serde_json::json!(headers), expected, "{name}");
        }
        other => panic!("{name}: {other:?}"),
    }
}

fn check_process(name: &str, case: &Value, launch: &Launch) {
    let argv = argv(launch);
    match case["argv"].as_array() {
        Some(expected) => {
            assert!(case["differs"].is_string(), "{name} does not say why it differs");
            assert_eq!(serde_json::json!(argv), serde_json::json!(expected), "{name}");
        }
        None => {
            let same: Vec<&String> = argv.iter().filter(|it| *it != "-y").collect();
            assert_eq!(serde_json::json!(same), case["vscode"], "{name}");
            assert_eq!(argv[0] == "npx", argv.get(1).is_some_and(|it| it == "-y"), "{name}");
        }
    }
    let own = |name: &&String| !["PATH"].contains(&name.as_str());
    let env: BTreeMap<&String, &str> =
        launch.env.0.iter().map(|(name, it)| (name, it.value.expose())).collect();
    let names: Vec<&&String> = env.keys().filter(|it| own(it)).collect();
    let env: BTreeMap<&String, &str> = names.into_iter().map(|it| (*it, env[*it])).collect();
    if let Some(expected) = case["env"].as_object() {
        assert_eq!(serde_json::json!(env), serde_json::json!(expected), "{name}");
    }
}
