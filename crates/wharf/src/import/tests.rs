//! Tests whole imports: every readable file results in an agent file that loads.

use super::*;
use serde_json::{Map, Value, json};
use wharf_config::load;

const CANARY: &str = "sk-canary-battery-staple";

fn imported(servers: Value, env: Env) -> Imported {
    let text = json!({ "mcpServers": servers }).to_string();
    import_text(&text, "mcp.json", env).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn import_text(text: &str, path: &str, env: Env) -> Result<Imported, ImportError> {
    let file = ClientFile { text: text.to_owned(), path: path.into(), client: None };
    import(&[file], Target { env, names: BTreeSet::new(), env_files: BTreeSet::new() })
}

fn notes(imported: &Imported) -> String {
    imported.notes.iter().map(|it| format!("{it}\n")).collect()
}

/// Returns the values of the only env file, or nothing.
fn env_file(imported: &Imported) -> &str {
    let [file] = &imported.env_files[..] else { return "" };
    file.text.split_once('\n').map_or("", |(_, values)| values)
}

/// Returns the agent file with every commented entry uncommented.
fn uncommented(yaml: &str) -> String {
    let mut in_entry = false;
    let mut out = String::new();
    for line in yaml.lines() {
        in_entry = line.starts_with("  # - ") || in_entry && !line.is_empty();
        out.push_str(&if in_entry { line.replacen("# ", "", 1) } else { line.to_owned() });
        out.push('\n');
    }
    out
}

#[test]
fn a_comment_becomes_an_entry_when_its_mark_is_removed() {
    let off =
        json!({"a": {"command": "uvx", "args": ["x", "--key", "k1"], "env": {"B": "c"}, "disabled": true}});
    let imported = imported(off, Env::bare());
    let yaml = uncommented(&imported.agent_yaml).replace("    envFile: .env.a\n", "");
    let mut env = Env::bare();
    env.variables.insert("A_KEY".into(), "k1".into());
    let (plan, diagnostics) = load(&yaml, &env);
    assert_eq!(plan.expect("a plan").sources.len(), 1, "{yaml}{:?}", diagnostics.items());
}

#[test]
fn refused_names_are_left_out_and_the_server_stays() {
    let servers =
        json!({"a": {"command": "npx", "args": ["-y", "x"], "env": {"PATH": CANARY, "LEVEL": "info"}}});
    let imported = imported(servers, Env::bare());
    assert!(notes(&imported).contains("`a`: `PATH` in `env` left out"), "{}", notes(&imported));
    assert!(!notes(&imported).contains(CANARY));
    assert_eq!(env_file(&imported), "LEVEL=info\n");
}

#[test]
fn every_env_and_header_value_moves_to_the_env_file() {
    let header = "      X-Team: \"${A_X_TEAM}\"\n";
    let image = "      - run\n      - \"-e\"\n      - T\n      - \"--env=U\"\n      - \"-e\"\n      - \"PATH=${A_PATH}\"\n";
    let folder = "      DIR: \"${workspaceFolder}/data\"\n";
    for (server, values, expected) in [
        (json!({"command": "npx", "args": ["x"], "env": {"LOG_LEVEL": "debug"}}), "LOG_LEVEL=debug\n", ""),
        (
            json!({"command": "npx", "args": ["x"], "env": {"A.B": "c"}}),
            "A_A_B=c\n",
            "      A.B: \"${A_A_B}\"\n",
        ),
        (json!({"command": "npx", "args": ["x"], "env": {"EMPTY": ""}}), "", "      EMPTY: \"\"\n"),
        (json!({"command": "npx", "args": ["x"], "env": {"DIR": "${workspaceFolder}/data"}}), "", folder),
        (json!({"url": "https://h.example", "headers": {"X-Team": "web"}}), "A_X_TEAM=web\n", header),
        (
            json!({"command": "docker", "args": ["run", "-e", "T=1", "--env=U=2", "-e", "PATH=3", "x"]}),
            "T=1\nU=2\nA_PATH=3\n",
            image,
        ),
    ] {
        let imported = imported(json!({ "a": server }), Env::bare());
        assert_eq!(env_file(&imported), values);
        assert!(imported.agent_yaml.contains(expected), "{}", imported.agent_yaml);
    }
}

#[test]
fn set_variables_stay_references() {
    let mut env = Env::bare();
    env.variables.insert("SET".into(), "x".into());
    let servers = json!({"a": {"command": "uvx", "args": ["x", "${env:SET}", "${SET}", "${env:NOT}", "${NOT}", "${env:userHome}"]}});
    let imported = imported(servers, env);
    let expected = "      - \"${env:SET}\"\n      - \"${SET}\"\n      - \"${NOT:-}\"\n      - \"${NOT:-}\"\n      - \"${env:userHome:-}\"\n";
    assert!(imported.agent_yaml.contains(expected), "{}", imported.agent_yaml);
    assert!(notes(&imported).starts_with("`a`: `NOT` is not set here; until it is, `${NOT:-}` is empty\n"));
}

#[test]
fn claude_desktop_variables_are_escaped() {
    let text = r#"{"mcpServers": {"a": {"command": "uvx", "args": ["x", "${HOME}"]}}}"#;
    let imported = import_text(text, "claude_desktop_config.json", Env::bare()).expect("an import");
    assert!(imported.agent_yaml.contains("      - \"$${HOME}\"\n"), "{}", imported.agent_yaml);
    assert!(notes(&imported).contains("is passed on literally"), "{}", notes(&imported));
}

#[test]
fn granted_commands_are_not_simplified() {
    let mut env = Env::bare();
    env.grants.commands.push("/opt/bin/npx".into());
    let servers =
        json!({"a": {"command": "/opt/bin/npx", "args": ["-c", "x"]}, "b": {"command": "/opt/bin/npx"}});
    let imported = imported(servers, env);
    assert_eq!(
        imported.agent_yaml.matches("\n    command: /opt/bin/npx\n").count(),
        2,
        "{}",
        imported.agent_yaml
    );
}

#[test]
fn env_file_of_the_client_is_kept_without_secrets() {
    let servers = json!({
        "a": {"command": "uvx", "args": ["x"], "envFile": "${workspaceFolder}/.env"},
        "b": {"command": "uvx", "args": ["x", "--key", CANARY], "envFile": "mine.env"},
    });
    let imported = imported(servers, Env::bare());
    // The env file of `a` does not exist, and the loader reports that.
    assert!(
        imported.agent_yaml.contains("  #   envFile: \"${workspaceFolder}/.env\"\n"),
        "{}",
        imported.agent_yaml
    );
    assert!(imported.agent_yaml.contains("    envFile: .env.b\n"), "{}", imported.agent_yaml);
    assert!(notes(&imported).contains("`b`: `envFile` left out"), "{}", notes(&imported));
}

#[test]
fn servers_beyond_the_limit_are_refused() {
    let servers: Map<String, Value> =
        (0..52).map(|it| (format!("s{it}"), json!({"command": "uvx", "args": ["x"]}))).collect();
    let imported = imported(Value::Object(servers), Env::bare());
    assert_eq!(imported.agent_yaml.matches("\n  - name: ").count(), 50);
    assert_eq!(imported.agent_yaml.matches("\n  # - name: ").count(), 2);
    assert_eq!(imported.servers.iter().filter(|it| !it.refused.is_empty()).count(), 2);
}

#[test]
fn secrets_are_only_in_the_env_file() {
    for (server, file) in [
        (json!({"command": "npx", "args": ["-y", "x", CANARY]}), true),
        (json!({"command": "npx", "args": ["-y", "x", format!("--token={CANARY}")]}), true),
        (json!({"command": "npx", "args": ["-y", "x", format!("{{\"k\": \"{CANARY}\"}}")]}), true),
        (json!({"command": "npx", "args": [CANARY]}), true),
        (json!({"command": format!("node x.js --token {CANARY}")}), true),
        (json!({"command": format!("npx -y x --token {CANARY}")}), true),
        (json!({"command": "bash", "args": ["-c", format!("TOKEN={CANARY} npx x && y")]}), true),
        (json!({"command": "npx", "args": ["x"], "env": {"PLAIN": CANARY}}), true),
        (json!({"command": "npx", "args": ["x"], "env": {"PLAIN": format!("${{X:-{CANARY}}}")}}), true),
        (
            json!({"command": "npx", "args": ["x"], "env": {"NO.DOTS": CANARY, "TOKEN": format!("{CANARY}\0")}}),
            true,
        ),
        (json!({"command": "npx", "args": ["x"], "env": {"NODE_OPTIONS": CANARY}}), false),
        (json!({"command": "docker", "args": ["run", "-e", format!("T={CANARY}"), "x"]}), true),
        (json!({"command": "docker", "args": ["run", format!("--env=T={CANARY}"), "x"]}), true),
        (json!({"command": "docker", "args": ["run", "-e", format!("PATH={CANARY}"), "x"]}), true),
        (json!({"url": format!("https://h.example/{CANARY}/mcp")}), true),
        (json!({"url": format!("https://h.example/mcp?q={CANARY}")}), true),
        (json!({"url": format!("https://{CANARY}@h.example/mcp")}), true),
        (json!({"url": "https://h.example", "headers": {"X-Some": CANARY}}), true),
        (json!({"url": "https://h.example", "env": {"X": CANARY}, "args": [CANARY], "oauth": CANARY}), false),
        (json!({"url": CANARY}), true),
        (json!({"command": "npx", "args": ["x", format!("${{command:{CANARY}}}")]}), true),
        (json!({"command": "npx", "args": ["x", CANARY], "envFile": CANARY}), true),
        (json!({"command": "npx", "args": ["x"], "type": CANARY, "description": CANARY}), true),
    ] {
        let imported = imported(json!({ "a": server }), Env::bare());
        assert!(!imported.agent_yaml.contains(CANARY), "{}", imported.agent_yaml);
        assert!(!notes(&imported).contains(CANARY), "{}", notes(&imported));
        let kept = imported.env_files.iter().any(|it| it.text.contains(CANARY));
        assert_eq!(kept, file, "{}", imported.agent_yaml);
    }
}

/// Strings that often break parsers and writers.
const STRINGS: &str = r##"|  |npx|uvx|docker|run|-y|-e|--|x|@a/b|${|$|}|${A}|${A:-b}|${input:a}|${file}|$${A}|a$${A}|https://h/mcp|wss://u:p@h|://|A=B|=|A: b|#|
|ü|- a
- b|sk-canary-battery-staple|.|..|./x|builtin:todo|null|cmd|/c|--token|true|sse|stdio|http|\0|\u{85}"##;

/// A deterministic pseudo-random number generator.
struct RandomServers(u64);

impl RandomServers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn text(&mut self) -> String {
        let strings: Vec<&str> = STRINGS.split('|').collect();
        strings[self.below(strings.len())].replace("\\0", "\0").replace("\\u{85}", "\u{85}")
    }

    /// Returns a random name. Never contains the canary, because names are not secrets.
    fn name(&mut self) -> String {
        self.text().replace(CANARY, "canary")
    }

    fn value(&mut self) -> Value {
        match self.below(5) {
            0 => json!([self.text(), self.text(), self.text()]),
            1 => json!({self.name(): self.text(), self.name(): self.text()}),
            2 => json!(self.below(9000)),
            _ => json!(self.text()),
        }
    }

    fn server(&mut self) -> Value {
        let keys = "command args cwd env url headers type envFile disabled timeout x description source \
                    bearer_token_env_var env_http_headers env_vars startup_timeout_sec";
        let keys: Vec<&str> = keys.split(' ').collect();
        let pair = |_| (keys[self.below(keys.len())].to_owned(), self.value());
        Value::Object((0..5).map(pair).collect())
    }
}

#[test]
fn random_servers_result_in_a_file_that_loads() {
    let mut random = RandomServers(7);
    for _ in 0..600 {
        let servers: Map<String, Value> = (0..3).map(|_| (random.name(), random.server())).collect();
        let imported = imported(Value::Object(servers), Env::bare());
        assert!(!imported.agent_yaml.contains(CANARY), "{}", imported.agent_yaml);
        assert!(!notes(&imported).contains(CANARY), "{}", notes(&imported));
        let refused = imported.servers.iter().flat_map(|it| &it.refused);
        assert!(!refused.map(|it| format!("{it:?}")).collect::<String>().contains(CANARY));
        let (_, diagnostics) = load(uncommented(&imported.agent_yaml), &Env::bare());
        let is_yaml = !diagnostics.items().iter().any(|it| it.code.starts_with("Y-"));
        assert!(is_yaml, "{}{:?}", imported.agent_yaml, diagnostics.items());
    }
}
