//! Tests `wharf add FILE.mcpb` and `wharf init --from FILE.mcpb`: the unpacked bundle, the entry, and a call.

use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// Packs `{name: [mode, text]}` from standard input into the zip file of its argument.
const PACK: &str = r#"
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as archive:
    for name, (mode, text) in json.load(sys.stdin).items():
        info = zipfile.ZipInfo(name)
        info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
        archive.writestr(info, text)
"#;

/// A server whose tool tells its arguments and its key.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer, method = {"jsonrpc": "2.0", "id": asked["id"]}, asked["method"]
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "tell", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": " ".join([*sys.argv[1:], os.environ.get("KEY", "no key")])}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

/// A folder with bundles, an agent file and a state folder.
struct Desk {
    folder: TempDir,
    python: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let folder = TempDir::new().expect("a folder");
        let python = ["/usr/local/bin/python3", "/usr/bin/python3"].map(PathBuf::from);
        let python = python.into_iter().find(|it| it.exists()).expect("Python");
        fs::create_dir(folder.path().join("state")).expect("a folder");
        Desk { folder, python }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn grant_python(&self) {
        let grant = format!("[grants]\ncommands = [\"{}\"]\n", self.python.display());
        fs::write(self.path("state/wharf.toml"), grant).expect("settings");
    }

    fn pack(&self, name: &str, files: &Value) {
        let mut command = Command::new(&self.python);
        command.args(["-c", PACK]).arg(self.path(name)).stdin(Stdio::piped());
        let mut child = command.spawn().expect("Python runs");
        let files = files.to_string();
        child.stdin.take().expect("its input").write_all(files.as_bytes()).expect("it reads");
        assert!(child.wait().expect("it ends").success());
    }

    fn wharf(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
        command.args(args).current_dir(self.folder.path()).env_clear();
        command.env("HOME", self.folder.path()).env("WHARF_HOME", self.path("state"));
        command.env("PATH", self.python.parent().expect("a folder"));
        command.output().expect("wharf runs")
    }

    fn bundles(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("state/bundles")).into_iter().flatten();
        entries.map(|it| it.expect("an entry").path()).collect()
    }
}

fn weather() -> Value {
    let manifest = json!({
        "manifest_version": "0.3", "name": "weather", "version": "1.2.3", "description": "Tells the weather.",
        "author": { "name": "Ada" },
        "server": { "type": "python", "entry_point": "server/main.py", "mcp_config": {
            "command": "python3",
            "args": ["${__dirname}/server/main.py", "${user_config.towns}", "--unit=${user_config.unit}"],
            "env": { "KEY": "${user_config.key}" },
        } },
        "user_config": {
            "key": { "type": "string", "title": "Key", "required": true, "sensitive": true },
            "towns": { "type": "string", "multiple": true, "default": ["Rome", "Oslo"] },
            "unit": { "type": "string", "title": "Unit" },
        },
    });
    json!({ "manifest.json": [0o100_644, manifest.to_string()], "server/main.py": [0o100_755, SERVER] })
}

#[test]
fn bundle_is_unpacked_and_its_server_can_be_called() {
    let desk = Desk::new();
    desk.grant_python();
    desk.pack("weather.mcpb", &weather());
    let added = desk.wharf(&["add", "weather.mcpb", "--json"]);
    assert_eq!(added.status.code(), Some(0), "{added:?}");
    let added: Value = serde_json::from_slice(&added.stdout).expect("JSON");
    assert_eq!((&added["name"], &added["optional"]), (&json!("weather"), &json!(["unit"])), "{added}");
    let variable = added["variables"][0].as_str().expect("a variable").to_owned();
    let [folder] = &desk.bundles()[..] else { panic!("{:?}", desk.bundles()) };
    let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("weather-1.2.3-"), "{name}");
    for (file, expected) in
        [("", 0o700), ("server", 0o700), ("server/main.py", 0o700), ("manifest.json", 0o600)]
    {
        let mode = fs::metadata(folder.join(file)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, expected, "{file}");
    }
    // The key goes to the env file.
    let env_file = fs::read_dir(desk.folder.path()).expect("a folder").map(|it| it.expect("an entry").path());
    let env_file = env_file.filter(|it| it.is_file());
    let env_file = env_file
        .filter(|it| it.extension().is_none_or(|it| it != "mcpb"))
        .find(|it| fs::read_to_string(it).is_ok_and(|it| it.contains(&format!("{variable}="))));
    let env_file = env_file.unwrap_or_else(|| panic!("no file has {variable}"));
    let text = fs::read_to_string(&env_file).expect("text");
    let filled: String = text
        .lines()
        .map(|it| {
            if it.starts_with(&format!("{variable}=")) {
                format!("{variable}=k1\n")
            } else {
                format!("{it}\n")
            }
        })
        .collect();
    fs::write(&env_file, filled).expect("it can be written");
    let called = desk.wharf(&["call", "weather__tell"]);
    assert_eq!(String::from_utf8_lossy(&called.stdout).trim(), "Rome Oslo k1", "{called:?}");
    // The same bundle again uses the same files.
    let again = desk.wharf(&["add", "weather.mcpb", "--name", "second"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    assert_eq!(desk.bundles().len(), 1);
}

#[test]
fn init_imports_a_bundle() {
    let desk = Desk::new();
    desk.grant_python();
    desk.pack("weather.MCPB", &weather());
    let output = desk.wharf(&["init", "--from", "weather.MCPB"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let agent_file = fs::read_to_string(desk.path("agent.yaml")).expect("an agent file");
    assert!(
        agent_file.contains("- name: weather\n") && agent_file.contains("command: python3"),
        "{agent_file}"
    );
}

#[test]
fn refused_bundle_leaves_nothing_behind() {
    let manifest = weather()["manifest.json"].clone();
    for (files, expected) in [
        (json!({ "manifest.json": manifest, "../escaped": [0o100_644, "x"] }), "which is not allowed"),
        (json!({ "manifest.json": manifest, "/escaped": [0o100_644, "x"] }), "which is not allowed"),
        (json!({ "manifest.json": manifest, "link": [0o120_777, "/etc"] }), "a link or a special file"),
        (json!({ "server.py": [0o100_644, "x"] }), "has no 'manifest.json'"),
        (json!({ "manifest.json": [0o100_644, "{}"] }), "cannot be used"),
        // Not granted.
        (weather(), "python3"),
    ] {
        let desk = Desk::new();
        desk.pack("it.mcpb", &files);
        let output = desk.wharf(&["add", "it.mcpb"]);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(complaint.contains(expected), "{complaint}");
        assert!(desk.bundles().is_empty(), "{:?}", desk.bundles());
        assert!(!desk.path("agent.yaml").exists() && !Path::new("/escaped").exists());
        assert!(!desk.path("state/escaped").exists() && !desk.path("escaped").exists());
    }
    let desk = Desk::new();
    fs::write(desk.path("it.mcpb"), "hello").expect("a file");
    let output = desk.wharf(&["add", "it.mcpb"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a zip file"), "{output:?}");
    let output = desk.wharf(&["add", "missing.mcpb"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
