//! Reads the manifest of a bundle and converts it to the form of VS Code's `mcp.json`, which the import understands.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::Path};

/// The manifest, as far as wharf uses it. Unknown keys are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct BundleManifest {
    name: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    description: Option<String>,
    server: BundledServer,
    #[serde(default)]
    user_config: BTreeMap<String, UserValue>,
}

#[derive(Debug, Deserialize)]
struct BundledServer {
    /// `node`, `python`, `uv` or `binary`.
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    entry_point: Option<String>,
    #[serde(default)]
    mcp_config: ServerCommand,
}

/// Command of the server. The keys of `platform_overrides` are the names of systems.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServerCommand {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    platform_overrides: BTreeMap<String, ServerCommand>,
}

/// A value that the user gives.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UserValue {
    title: Option<String>,
    description: Option<String>,
    required: bool,
    sensitive: bool,
    default: Value,
}

/// Text that replaces a variable.
enum Replacement {
    /// One or more texts. Only an argument can have several.
    Texts(Vec<String>),
    /// The user has not given this optional value, so everything that uses it is left out.
    LeftOut(String),
}

impl BundleManifest {
    /// Parses a manifest. The error is a sentence about the bundle.
    pub(super) fn read(bytes: &[u8]) -> Result<BundleManifest, String> {
        let manifest: BundleManifest = serde_json::from_slice(bytes)
            .map_err(|error| format!("has a 'manifest.json' that cannot be used: {error}"))?;
        match manifest.server.kind.as_str() {
            "node" | "python" | "uv" | "binary" => Ok(manifest),
            _ => {
                Err("has a server of a type that is not supported; node, python, uv and binary are"
                    .to_owned())
            }
        }
    }

    /// Returns a folder name with the bundle's name and version, of letters that are safe everywhere.
    pub(super) fn folder_name(&self) -> String {
        let name = format!("{}-{}", self.name, self.version.as_deref().unwrap_or("0"));
        let is_safe = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
        let name: String = name.chars().map(|it| if is_safe(it) { it } else { '-' }).take(100).collect();
        name.trim_start_matches('.').to_owned()
    }

    /// Returns the server and its inputs as JSON, and the optional values that are left out.
    pub(super) fn servers(&self, folder: &Path, name: Option<&str>) -> (String, Vec<String>) {
        let ServerCommand { command, args, env, .. } = self.command();
        let (mut left_out, mut inputs) = (Vec::new(), Map::new());
        let mut fill = |text: &str| match self.fill(text, folder, &mut inputs) {
            Replacement::Texts(texts) => texts,
            Replacement::LeftOut(name) => {
                left_out.push(name);
                Vec::new()
            }
        };
        let command = fill(&command.unwrap_or_default()).join(" ");
        let args: Vec<String> = args.unwrap_or_default().iter().flat_map(|it| fill(it)).collect();
        let env = env.unwrap_or_default();
        let env = env.iter().map(|(name, value)| (name.clone(), fill(value)));
        let env: Map<String, Value> =
            env.filter(|(_, it)| !it.is_empty()).map(|(name, it)| (name, it.join(",").into())).collect();
        left_out.sort();
        left_out.dedup();
        let description = self.description.as_deref().unwrap_or(&self.name);
        let server = json!({ "command": command, "args": args, "env": env, "description": description });
        let inputs: Vec<Value> = inputs.into_iter().map(|(_, input)| input).collect();
        let document = json!({ "servers": { name.unwrap_or(&self.name): server }, "inputs": inputs });
        (document.to_string(), left_out)
    }

    /// Returns the command for this system. A manifest without one has a default for its type.
    fn command(&self) -> ServerCommand {
        let system = match std::env::consts::OS {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        };
        let given = &self.server.mcp_config;
        let own = given.platform_overrides.get(system);
        let entry_point = self.server.entry_point.as_deref().unwrap_or_default();
        let script = format!("${{__dirname}}/{entry_point}");
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<String>>();
        let (program, usual) = match self.server.kind.as_str() {
            "node" => ("node", words(&[&script])),
            "python" => ("python", words(&[&script])),
            "uv" => ("uv", words(&["run", "--directory", "${__dirname}", &script])),
            _ => (script.as_str(), Vec::new()),
        };
        let command = own.and_then(|it| it.command.clone()).or_else(|| given.command.clone());
        let args = own.and_then(|it| it.args.clone()).or_else(|| given.args.clone());
        let mut env = given.env.clone().unwrap_or_default();
        env.extend(own.and_then(|it| it.env.clone()).unwrap_or_default());
        let usual = if command.is_none() { usual } else { Vec::new() };
        ServerCommand {
            command: Some(command.unwrap_or_else(|| program.to_owned())),
            args: Some(args.unwrap_or(usual)),
            env: Some(env),
            ..ServerCommand::default()
        }
    }

    /// Replaces the variables of a text. Values that the user has to give become inputs.
    fn fill(&self, text: &str, folder: &Path, inputs: &mut Map<String, Value>) -> Replacement {
        let (mut filled, mut rest) = (vec![String::new()], text);
        while let Some((before, tail)) = rest.split_once("${") {
            let Some((variable, after)) = tail.split_once('}') else { break };
            filled.iter_mut().for_each(|it| it.push_str(before));
            let texts = match self.variable(variable, folder, inputs) {
                Replacement::Texts(texts) => texts,
                left_out => return left_out,
            };
            // An argument that is only a list becomes several arguments; elsewhere the list is one text.
            if before.is_empty() && after.is_empty() && filled == [String::new()] {
                return Replacement::Texts(texts);
            }
            filled.iter_mut().for_each(|it| it.push_str(&texts.join(",")));
            rest = after;
        }
        filled.iter_mut().for_each(|it| it.push_str(rest));
        Replacement::Texts(filled)
    }

    fn variable(&self, name: &str, folder: &Path, inputs: &mut Map<String, Value>) -> Replacement {
        let one = |text: String| Replacement::Texts(vec![text]);
        let Some(key) = name.strip_prefix("user_config.") else {
            return one(match name {
                "__dirname" => folder.display().to_string(),
                "HOME" => "${userHome}".to_owned(),
                "DESKTOP" => "${userHome}/Desktop".to_owned(),
                "DOCUMENTS" => "${userHome}/Documents".to_owned(),
                "DOWNLOADS" => "${userHome}/Downloads".to_owned(),
                other => format!("${{{other}}}"),
            });
        };
        let none = UserValue { required: true, ..UserValue::default() };
        let value = self.user_config.get(key).unwrap_or(&none);
        let defaults: Vec<String> = match &value.default {
            Value::Null => Vec::new(),
            Value::Array(items) => items.iter().filter_map(scalar_text).collect(),
            other => scalar_text(other).into_iter().collect(),
        };
        // A default may use the folders of the user, but no other value.
        let fill = |it: &String| match it.contains("${user_config.") {
            true => vec![it.clone()],
            false => match self.fill(it, folder, &mut Map::new()) {
                Replacement::Texts(texts) => texts,
                Replacement::LeftOut(_) => Vec::new(),
            },
        };
        if !defaults.is_empty() && !value.sensitive {
            return Replacement::Texts(defaults.iter().flat_map(fill).collect());
        }
        if !value.required && !value.sensitive {
            return Replacement::LeftOut(key.to_owned());
        }
        let words = [&value.title, &value.description].into_iter().flatten();
        let description = words.map(String::as_str).collect::<Vec<_>>().join(": ");
        let input = json!({ "id": key, "type": "promptString", "description": description,
            "password": value.sensitive, "default": defaults.first() });
        inputs.insert(key.to_owned(), input);
        one(format!("${{input:{key}}}"))
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(server: Value, user_config: Value) -> (Value, String) {
        let manifest = json!({ "manifest_version": "0.3", "name": "weather", "version": "1.0.0", "description": "It rains.",
            "author": { "name": "Ada" }, "server": server, "user_config": user_config, "tools": [] });
        let manifest = BundleManifest::read(manifest.to_string().as_bytes()).expect("it can be used");
        assert_eq!(manifest.folder_name(), "weather-1.0.0");
        let (text, optional) = manifest.servers(Path::new("/b"), None);
        (serde_json::from_str(&text).expect("JSON"), optional.join(" "))
    }

    #[test]
    fn variables_are_replaced() {
        let server = json!({ "type": "node", "entry_point": "server/index.js", "mcp_config": {
            "command": "node",
            "args": ["${__dirname}${/}server/index.js", "--key=${user_config.key}", "${user_config.dirs}", "--town=${user_config.town}",
                "--all=${user_config.dirs}", "${user_config.unit}"],
            "env": { "KEY": "${user_config.key}", "TOWN": "${user_config.town}", "DEBUG": "${user_config.debug}", "PLAIN": "x" },
        } });
        let user_config = json!({
            "key": { "type": "string", "title": "Key", "description": "From the site", "required": true, "sensitive": true },
            "dirs": { "type": "directory", "title": "Folders", "multiple": true, "default": ["${HOME}/a", "/b"] },
            "town": { "type": "string", "title": "Town" },
            "debug": { "type": "boolean", "default": false },
            "unit": { "type": "string", "required": true },
        });
        let (document, optional) = servers(server, user_config);
        assert_eq!(
            document["servers"]["weather"],
            json!({
                "command": "node",
                "args": ["/b${/}server/index.js", "--key=${input:key}", "${userHome}/a", "/b", "--all=${userHome}/a,/b", "${input:unit}"],
                "env": { "KEY": "${input:key}", "DEBUG": "false", "PLAIN": "x" },
                "description": "It rains.",
            })
        );
        assert_eq!(document["inputs"][0]["description"], "Key: From the site");
        assert_eq!(
            (&document["inputs"][0]["id"], &document["inputs"][1]["id"]),
            (&json!("key"), &json!("unit"))
        );
        assert_eq!(optional, "town");
    }

    #[test]
    fn command_follows_from_type_and_system() {
        let own = std::env::consts::OS;
        let overrides =
            json!({ own: { "command": "other", "env": { "B": "2" } }, "plan9": { "command": "no" } });
        for (server, command, args) in [
            (json!({ "type": "node", "entry_point": "a.js" }), "node", json!(["/b/a.js"])),
            (json!({ "type": "python", "entry_point": "a.py" }), "python", json!(["/b/a.py"])),
            (
                json!({ "type": "uv", "entry_point": "a.py" }),
                "uv",
                json!(["run", "--directory", "/b", "/b/a.py"]),
            ),
            (json!({ "type": "binary", "entry_point": "bin/x" }), "/b/bin/x", json!([])),
            (
                json!({ "type": "node", "mcp_config": { "command": "node", "args": ["x"], "env": { "A": "1" }, "platform_overrides": overrides } }),
                "other",
                json!(["x"]),
            ),
        ] {
            let (document, _) = servers(server, json!({}));
            let server = &document["servers"]["weather"];
            assert_eq!((&server["command"], &server["args"]), (&json!(command), &args));
            if command == "other" {
                assert_eq!(server["env"], json!({ "A": "1", "B": "2" }));
            }
        }
    }

    #[test]
    fn unusable_manifests_are_refused() {
        for text in ["", "[]", "{}", r#"{"name": "x"}"#, r#"{"name": "x", "server": {"type": "java"}}"#] {
            assert!(BundleManifest::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
