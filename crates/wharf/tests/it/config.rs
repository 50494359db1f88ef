//! Agent files as data: what is fine loads, what is wrong is explained in exactly these words.
//!
//! `config/good/*.yaml` must load; a `.txt` beside one holds the warnings it earns. `config/bad/*.yaml` must not load,
//! and the `.txt` beside each is what a person sees. Lines that begin with `#@` are the operator's wharf.toml. All of
//! them are loaded with the folder `config/folder` and the same few variables. `UPDATE=1` writes the `.txt` files anew;
//! read the difference before you believe it.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};
use wharf_runtime::config::{Env, Folder, Severity, load, load_settings};

/// The value of `${TOKEN}`: it must never be seen in anything that is printed.
const CANARY: &str = "canary-7f3e9a";

#[test]
fn good_files_load() {
    let cases = cases("good");
    assert!(cases.len() >= 20, "only {} good cases were found", cases.len());
    cases.iter().for_each(|case| check(case, true));
}

#[test]
fn bad_files_are_explained() {
    let cases = cases("bad");
    assert!(cases.len() >= 120, "only {} bad cases were found", cases.len());
    cases.iter().for_each(|case| check(case, false));
}

/// One file, and what is said about it.
fn check(case: &Path, loads: bool) {
    let name = case.file_name().and_then(|it| it.to_str()).expect("a name");
    let bytes = fs::read(case).expect("the case can be read");
    let (plan, diagnostics) = load(&bytes, &env_for(name, &bytes));
    assert_eq!(plan.is_some(), loads, "{name}:\n{}", diagnostics.render(false));
    assert_eq!(plan.is_some(), !diagnostics.has_errors(), "{name}: a plan and errors never come together");

    let rendered = diagnostics.render(false);
    let printed = format!("{rendered}{}{plan:?}", diagnostics.to_json());
    assert!(!printed.contains(CANARY), "{name}: the value of a variable is shown:\n{printed}");
    for item in diagnostics.items().iter().filter(|it| it.severity == Severity::Error) {
        assert!(
            !item.code.is_empty() && !item.message.ends_with('.') || item.code == "V-01",
            "{name}: {item:?}"
        );
    }
    expect(&case.with_extension("txt"), &rendered);
}

/// Compares with the file, or writes it under `UPDATE=1`. Nothing to say means no file.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says whether to write")]
fn expect(file: &Path, rendered: &str) {
    if env::var_os("UPDATE").is_some() {
        match rendered {
            "" => _ = fs::remove_file(file),
            _ => fs::write(file, rendered).expect("the expectation can be written"),
        }
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    assert!(expected == rendered, "{} says:\n{expected}\nbut this was said:\n{rendered}", file.display());
}

fn cases(kind: &str) -> Vec<PathBuf> {
    let folder = home().join(kind);
    let mut cases: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of cases")
        .map(|it| it.expect("an entry").path())
        .filter(|it| it.extension().is_some_and(|it| it == "yaml"))
        .collect();
    cases.sort();
    cases
}

fn env_for(name: &str, bytes: &[u8]) -> Env {
    let text = String::from_utf8_lossy(bytes);
    let settings: String =
        text.lines().filter_map(|it| it.strip_prefix("#@")).map(|it| format!("{it}\n")).collect();
    let (settings, diagnostics) = load_settings(&settings, "wharf.toml");
    let grants = settings.unwrap_or_else(|| panic!("{name}: {}", diagnostics.render(false))).grants;
    let variables = [
        ("TOKEN", CANARY),
        ("API_TOKEN", CANARY),
        ("MY_API_KEY", CANARY),
        ("DB_CONNECTION", CANARY),
        ("GITHUB_TOKEN", CANARY),
        ("DATABASE_URL", CANARY),
        ("CUSTOM_CONFIG", CANARY),
        ("API_KEY", CANARY),
        ("CLOUD_API_KEY", CANARY),
        ("ENV_VAR", CANARY),
        ("PORT", "8080"),
        ("YES", "true"),
        ("EMPTY", ""),
        ("LINES", "two\nlines"),
        ("EVIL_FLAG", "--call"),
        ("EVIL_URL", "http://canary-7f3e9a.example.com/"),
        ("HOME", "/home/someone"),
        ("PATH", "/usr/bin:/bin"),
        ("HTTPS_PROXY", "http://proxy.example.com:3128"),
    ];
    Env {
        file: name.to_owned(),
        // Not the folder's true path, which differs from machine to machine.
        folder: PathBuf::from("/agents/demo"),
        home: Some(PathBuf::from("/home/someone")),
        variables: BTreeMap::from(variables.map(|(name, value)| (name.to_owned(), value.to_owned()))),
        files: Box::new(Folder::new(home().join("folder"))),
        grants,
    }
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/config")
}
