//! Tests agent files as data: good files load, and bad files produce exactly the expected messages.
//!
//! `config/good/*.yaml` must load; a `.txt` beside a file contains the expected warnings. `config/bad/*.yaml` must
//! not load; the `.txt` beside each is the expected output. `config/settings/*.toml` are wharf.toml files with
//! mistakes. All agent files are loaded with the folder `config/folder` and the same few variables. Special
//! comments in a case configure it: `#@` is a line of the operator's wharf.toml, `#!strict` is `--strict`, and `#=`
//! is a command line that must result. `UPDATE=1` rewrites the `.txt` files; review the diff.

use std::{
    collections::BTreeMap,
    env, fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::Arc,
};
use wharf_config::{
    Diagnostics, Endpoint, Env, FileError, Files, Folder, Launch, Plan, Program, Severity, load,
    load_settings,
};

/// Value of `${TOKEN}` and of all other secrets. It must never appear in any output.
const CANARY: &str = "canary-7f3e9a";

#[test]
fn good_files_load() {
    check_all(&cases("good", "yaml"), 60, |case| check(case, true));
}

#[test]
fn bad_files_give_the_expected_messages() {
    check_all(&cases("bad", "yaml"), 140, |case| check(case, false));
}

#[test]
fn bad_settings_give_the_expected_messages() {
    check_all(&cases("settings", "toml"), 10, |case| {
        let (settings, diagnostics) = load_settings(read(case), name(case));
        check_messages(case, settings.is_some(), false, &diagnostics)
    });
}

/// Checks all cases before it reports failures. A panic is a failure too.
fn check_all(cases: &[PathBuf], least: usize, check: impl Fn(&Path) -> Result<(), String>) {
    assert!(cases.len() >= least, "only {} cases were found", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let checked = panic::catch_unwind(AssertUnwindSafe(|| check(case)));
            checked.unwrap_or_else(|_| Err(format!("{}: it panics", name(case)))).err()
        })
        .collect();
    assert!(wrong.is_empty(), "{} cases are wrong:\n\n{}", wrong.len(), wrong.join("\n"));
}

/// Checks one agent file: whether it loads, its messages, and the commands it would run.
fn check(case: &Path, loads: bool) -> Result<(), String> {
    let bytes = read(case);
    let text = String::from_utf8_lossy(&bytes);
    let (plan, mut diagnostics) = load(&bytes, &env_for(name(case), &text));
    if text.lines().any(|it| it == "#!strict") {
        diagnostics.raise_missing_descriptions();
    }
    let plan = plan.filter(|_| !diagnostics.has_errors());
    check_messages(case, plan.is_some(), loads, &diagnostics)?;
    if format!("{plan:?}").contains(CANARY) {
        return Err(format!("{}: the plan shows the value of a variable", name(case)));
    }
    let expected: Vec<&str> = text.lines().filter_map(|it| it.strip_prefix("#= ")).collect();
    let runs = plan.iter().flat_map(command_lines).collect::<Vec<_>>();
    if !expected.is_empty() && runs != expected {
        return Err(format!("{} would run {runs:#?}\ninstead of {expected:#?}", name(case)));
    }
    Ok(())
}

/// Checks the messages of a file: exactly the expected ones, and no secrets.
fn check_messages(case: &Path, loaded: bool, loads: bool, diagnostics: &Diagnostics) -> Result<(), String> {
    let name = name(case);
    let rendered = diagnostics.render(false);
    if loaded != loads {
        return Err(format!("{name}: it loads: {loaded}\n{rendered}"));
    }
    if loaded == diagnostics.has_errors() {
        return Err(format!("{name}: a result and errors never come together\n{rendered}"));
    }
    if format!("{rendered}{}", diagnostics.to_json()).contains(CANARY) {
        return Err(format!("{name}: a secret is shown:\n{rendered}"));
    }
    for item in diagnostics.items().iter().filter(|it| it.severity == Severity::Error) {
        if item.code.is_empty() || item.message.ends_with('.') && item.code != "V-01" {
            return Err(format!("{name}: {item:?}"));
        }
    }
    expect(&case.with_extension("txt"), &rendered)
}

/// Compares the text with the file, or writes the file if `UPDATE=1` is set. Empty text means no file.
#[expect(clippy::disallowed_methods, reason = "the UPDATE variable decides whether to write")]
fn expect(file: &Path, rendered: &str) -> Result<(), String> {
    if env::var_os("UPDATE").is_some() {
        match rendered {
            "" => _ = fs::remove_file(file),
            _ => fs::write(file, rendered).expect("the expectation can be written"),
        }
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    match expected == rendered {
        true => Ok(()),
        false => Err(format!("{} says:\n{expected}\nbut the output was:\n{rendered}", file.display())),
    }
}

/// Returns the command line of every child process in its displayable form.
fn command_lines(plan: &Plan) -> Vec<String> {
    let launches = plan.sources.iter().filter_map(|it| match &it.endpoint {
        Endpoint::Stdio(launch) => Some(launch),
        _ => None,
    });
    launches.map(command_line).collect()
}

fn command_line(launch: &Launch) -> String {
    let program = match &launch.program {
        Program::Launcher(launcher) => launcher.as_str().to_owned(),
        Program::Granted(path) => path.display().to_string(),
        Program::Interpreter(interpreter) => interpreter.as_str().to_owned(),
    };
    let args = launch.args.iter().map(|it| it.value.shown().to_owned());
    let line = [program].into_iter().chain(args).collect::<Vec<_>>().join(" ");
    // A mount contains the real path of its source, which differs between machines.
    let folder = home().join("folder").canonicalize().expect("the folder of the fixtures");
    line.replace(&*folder.to_string_lossy(), "/agents/demo")
}

fn cases(kind: &str, extension: &str) -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(home().join(kind))
        .expect("the folder of cases")
        .map(|it| it.expect("an entry").path())
        .filter(|it| it.extension().is_some_and(|it| it == extension))
        .collect();
    cases.sort();
    cases
}

fn read(case: &Path) -> Vec<u8> {
    fs::read(case).expect("the case can be read")
}

fn name(case: &Path) -> &str {
    case.file_name().and_then(|it| it.to_str()).expect("a name")
}

fn env_for(name: &str, text: &str) -> Env {
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
        ("ONE", "1"),
        ("YES", "true"),
        ("EMPTY", ""),
        ("LAUNCHER", "npx"),
        ("LINES", "two\nlines"),
        ("NESTED", "${TOKEN}"),
        ("EVIL_FLAG", "--call"),
        ("EVIL_PACKAGE", "git+https://canary-7f3e9a.example.com/x"),
        ("EVIL_URL", "http://canary-7f3e9a.example.com/"),
        ("EVIL_LOOPBACK", "http://canary-7f3e9a.local%68ost/"),
        ("HOME", "/home/someone"),
        ("PATH", "/usr/bin:/bin"),
        ("HTTPS_PROXY", "http://proxy.example.com:3128"),
    ];
    Env {
        file: name.to_owned(),
        // A fixed path, because the real one differs between machines.
        folder: PathBuf::from("/agents/demo"),
        home: Some(PathBuf::from("/home/someone")),
        variables: BTreeMap::from(variables.map(|(name, value)| (name.to_owned(), value.to_owned()))),
        files: Arc::new(Fixtures(Folder::new(home().join("folder")))),
        grants,
        ..Env::bare()
    }
}

/// The files in `config/folder`, and a few that a repository cannot contain.
struct Fixtures(Folder);

impl Files for Fixtures {
    fn locate(&self, path: &str) -> Result<PathBuf, FileError> {
        self.0.locate(path)
    }

    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        match path {
            "huge" => Err(FileError::TooLarge(max_bytes)),
            "pipe" => Err(FileError::NotRegular("a pipe")),
            "device" => Err(FileError::NotRegular("a device")),
            path => self.0.read(path, max_bytes),
        }
    }
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/config")
}
