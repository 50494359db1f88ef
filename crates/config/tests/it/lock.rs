//! Tests `wharf.lock`: what is written is read again, and nothing else is accepted.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};
use wharf_config::{
    Endpoint, Env, FileError, Files, LockError, LockFile, LockedDependencies, LockedIdentity, LockedItem,
    LockedPackage, LockedServer, PackageKind, load,
};

/// Generates JSON with texts and keys that the format treats specially.
fn json_value() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof!["[a-c\n\t\"\\\\]{0,6}", "[\u{200b}\u{e0041}\u{a0}\u{feff}x\u{7}]{0,4}", any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300f64).prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("$lines".to_owned()),
        Just("$$lines".to_owned()),
        Just("lines".to_owned()),
        "[a-c$]{1,3}"
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..4).prop_map(|it| json!(it)),
        ]
    })
}

fn lock(definitions: Vec<Value>, instructions: Option<String>) -> LockFile {
    let mut package = LockedPackage::new(PackageKind::PyPi, "mcp-server-time");
    package.version = Some("1.2".into());
    package.integrity.insert("py3-none-any".into(), "sha256-ab".into());
    package.dependencies = LockedDependencies { pins: [("mcp".into(), "1".into())].into(), hash: None };
    let tools = definitions.into_iter().enumerate();
    let server = LockedServer {
        package: Some(package),
        identity: LockedIdentity { name: "s".into(), instructions, ..LockedIdentity::default() },
        tools: tools.map(|(at, it)| (format!("tool{at}"), LockedItem::of(it))).collect(),
        ..LockedServer::default()
    };
    LockFile { servers: [("a".into(), server)].into() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_again(
        definitions in prop::collection::vec(json_value(), 0..4),
        instructions in prop::option::of(any::<String>()),
    ) {
        let lock = lock(definitions, instructions);
        let text = lock.to_text();
        let read = LockFile::parse(text.as_bytes()).expect("a lock");
        prop_assert_eq!(&read, &lock);
        prop_assert_eq!(read.to_text(), text);
    }

    /// A server may list its tools in another order each time.
    #[test]
    fn order_of_a_listing_does_not_change_the_file(
        definitions in prop::collection::btree_map("[a-z]{1,4}", json_value(), 0..6),
        order in any::<prop::sample::Index>(),
    ) {
        let mut listed: Vec<(String, LockedItem)> =
            definitions.into_iter().map(|(name, it)| (name, LockedItem::of(it))).collect();
        let file = |listed: &[(String, LockedItem)]| {
            let tools = listed.iter().cloned().collect();
            let server = LockedServer { tools, ..LockedServer::default() };
            LockFile { servers: [("a".into(), server)].into() }.to_text()
        };
        let text = file(&listed);
        if !listed.is_empty() {
            let at = order.index(listed.len());
            listed.rotate_left(at);
        }
        prop_assert_eq!(&file(&listed), &text);
        listed.reverse();
        prop_assert_eq!(file(&listed), text);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = LockFile::parse(&bytes);
    }
}

#[test]
fn invisible_characters_and_lines_are_visible_in_the_file() {
    let text = lock(vec![json!({ "description": "one\ntwo\u{200b}\u{e0041}" })], None).to_text();
    assert!(text.contains("\"$lines\": [\n"), "{text}");
    assert!(text.contains(r#""two\u200b\udb40\udc41""#), "{text}");
    assert!(text.ends_with("}\n") && !text.contains('\u{200b}'), "{text}");
}

#[test]
fn order_and_unlocked_members_do_not_matter() {
    let one = json!({ "name": "a", "icons": [1], "_meta": { "x": 1 }, "description": "d" });
    let two = json!({ "description": "d", "name": "a" });
    assert_eq!(LockedItem::of(one).hash, LockedItem::of(two).hash);
}

#[test]
fn changed_files_are_refused() {
    let text = lock(vec![json!({ "name": "a", "description": "before" })], None).to_text();
    let parse = |text: &str| LockFile::parse(text.as_bytes());
    assert!(parse(&text).is_ok());
    assert_eq!(parse(&text.replace("before", "after")), Err(LockError::WrongHash("a:tool0".into())));
    for (from, to) in [
        ("\"version\": 1\n", "\"version\": 2\n"),
        ("\"prompts\"", "\"surprise\""),
        ("\"type\": \"pypi\"", "\"type\": \"zip\""),
        ("\"spec\"", "\"version\""),
        ("{", ""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert!(matches!(parse(&changed), Err(LockError::Unreadable(_))), "{from} is {to}: {changed}");
    }
}

/// A folder with nothing but a lock file.
struct OnlyLock(String);

impl Files for OnlyLock {
    fn locate(&self, _: &str) -> Result<PathBuf, FileError> {
        Err(FileError::Missing)
    }

    fn read(&self, path: &str, _: u64) -> Result<Vec<u8>, FileError> {
        if path == "wharf.lock" { Ok(self.0.clone().into_bytes()) } else { Err(FileError::Missing) }
    }
}

/// Loads an entry beside a lock. Returns its command line, or the code and message of the first error.
fn loaded(entry: &str, package: LockedPackage) -> Result<String, String> {
    let server = LockedServer { package: Some(package), ..LockedServer::default() };
    let lock = LockFile { servers: [("a".into(), server)].into() };
    let env = Env { files: Arc::new(OnlyLock(lock.to_text())), ..Env::bare() };
    let text = format!("tools:\n  - {{name: a, description: d, type: mcp, {entry}}}\n");
    let (plan, diagnostics) = load(text, &env);
    let Some(plan) = plan else {
        let first = &diagnostics.items()[0];
        return Err(format!("{} {}", first.code, first.message));
    };
    let Endpoint::Stdio(launch) = &plan.sources[0].endpoint else { return Ok(String::new()) };
    let args: Vec<&str> = launch.args.iter().map(|it| it.value.expose()).collect();
    Ok(format!(
        "{}{}",
        args.join(" "),
        launch.constraints.as_deref().map(|it| format!(" | {it}")).unwrap_or_default()
    ))
}

fn package(kind: PackageKind, spec: &str, version: &str) -> LockedPackage {
    LockedPackage { version: Some(version.to_owned()), ..LockedPackage::new(kind, spec) }
}

#[test]
fn locked_versions_are_started() {
    let npm = || package(PackageKind::Npm, "@scope/server", "1.2.3");
    let mut pypi = package(PackageKind::PyPi, "mcp-server-time", "2.0");
    pypi.dependencies.pins.insert("mcp".into(), "1.9".into());
    let mut image = LockedPackage::new(PackageKind::Docker, "registry.io/team/server:1");
    image.integrity.insert(String::new(), "sha256:ab".into());
    for (entry, package, expected) in [
        ("server: '@scope/server', command: npx", npm(), "-y @scope/server@1.2.3"),
        (
            "server: x, command: npx, args: ['-y', '@scope/server@^1', '--flag']",
            npm(),
            "-y @scope/server@1.2.3 --flag",
        ),
        (
            "server: x, command: npx, args: ['-p', '@scope/server', 'tool']",
            npm(),
            "-y -p @scope/server@1.2.3 -- tool",
        ),
        ("server: '@scope/server', command: npx, lock: {pin: false}", npm(), "-y @scope/server"),
        ("server: '@scope/server', command: npx, lock: off", npm(), "-y @scope/server"),
        (
            "server: mcp-server-time, command: uvx, args: [mcp-server-time, --local]",
            pypi.clone(),
            "--constraints wharf-constraints.txt --from mcp-server-time==2.0 mcp-server-time --local | mcp==1.9\n",
        ),
        (
            "server: x, command: uvx, args: [--from, mcp-server-time, tool]",
            pypi,
            "--constraints wharf-constraints.txt --from mcp-server-time==2.0 tool | mcp==1.9\n",
        ),
    ] {
        assert_eq!(loaded(entry, package).as_deref(), Ok(expected), "{entry}");
    }
    let run = loaded("server: 'registry.io/team/server:1', command: docker", image).expect("a plan");
    assert!(run.contains(" registry.io/team/server@sha256:ab"), "{run}");
}

#[test]
fn other_versions_than_the_locked_one_are_refused() {
    for (entry, locked) in [
        ("server: '@scope/server@1.3.0', command: npx", package(PackageKind::Npm, "@scope/server", "1.2.3")),
        ("server: '@scope/other', command: npx", package(PackageKind::Npm, "@scope/server", "1.2.3")),
        (
            "server: 'mcp-server-time==3.0', command: uvx",
            package(PackageKind::PyPi, "mcp-server-time", "2.0"),
        ),
    ] {
        let refused = loaded(entry, locked).expect_err("it is refused");
        assert!(refused.starts_with("L-05 ConfigError: agent.yaml asks for "), "{refused}");
    }
}

#[test]
fn unusable_locks_and_unlocked_entries_are_reported() {
    let entry = "tools:\n  - {name: a, description: d, type: mcp, server: 'builtin:todo'}\n";
    let check = |lock: &str, top: &str| {
        let env = Env { files: Arc::new(OnlyLock(lock.to_owned())), ..Env::bare() };
        let (plan, diagnostics) = load(format!("{top}{entry}"), &env);
        let codes: Vec<&str> = diagnostics.items().iter().map(|it| it.code).collect();
        (plan.is_some(), codes)
    };
    let empty = LockFile::default().to_text();
    assert_eq!(check("not JSON", ""), (false, vec!["L-02"]));
    assert_eq!(check(&empty, ""), (false, vec!["L-04"]));
    assert_eq!(check(&empty, "lock: warn\n"), (true, vec!["L-04"]));
    assert_eq!(check(&empty, "lock: off\n"), (true, vec![]));
    let other = LockFile { servers: [("gone".into(), LockedServer::default())].into() };
    assert_eq!(check(&other.to_text(), "lock: warn\n").1, ["L-04", "L-04"]);
}
