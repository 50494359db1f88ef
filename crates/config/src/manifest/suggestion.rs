//! Suggests a `tools:` entry for a manifest. Values that the user must give are written as variables.

use super::{EntryFields, Manifest, ManifestFiller, Selection, ValueSource, argv::REMOTE};
use crate::masked_string::MaskedString;

/// A suggested entry of `tools:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Name of the entry, derived from the manifest.
    pub name: String,
    /// Description of the server.
    pub description: Option<String>,
    /// Package, or the manifest's name of the server.
    pub server: String,
    /// Command and arguments, for a server that runs as a process.
    pub command: Option<(String, Vec<String>)>,
    /// Environment of that process.
    pub env: Vec<(String, String)>,
    /// Transport and URL, for a remote server.
    pub remote: Option<(&'static str, String)>,
    /// Headers to send with every request.
    pub headers: Vec<(String, String)>,
    /// Variables that the entry uses and that must be set.
    pub variables: Vec<String>,
    /// Optional values that the entry omits.
    pub optional: Vec<String>,
}

/// Suggests an entry for a manifest. The error is one sentence that continues "the manifest cannot be used".
pub fn suggest(manifest: &[u8]) -> Result<Suggestion, String> {
    if manifest.len() as u64 > super::MAX_MANIFEST_BYTES {
        return Err(format!("it is larger than {} MiB", super::MAX_MANIFEST_BYTES / 1024 / 1024));
    }
    let manifest = Manifest::read(manifest)?;
    let mut filler = ManifestFiller::new(ValueSource::Placeholders);
    let selection = manifest.selection(None, Some("stdio")).or_else(|why| {
        // An agent file has no entry for a process that listens on a port.
        let remote = manifest.selection(None, Some(REMOTE)).ok();
        remote.filter(|it| matches!(it, Selection::Remote(_))).ok_or(why)
    });
    let (server, entry_fields) = match selection? {
        Selection::Remote(remote) => (None, remote.entry_fields(&mut filler)?),
        Selection::Package(package, _) => {
            let server = package.identifier.clone().or_else(|| package.command.first().cloned());
            (server, package.entry_fields(None, &mut filler, Vec::new())?)
        }
    };
    let EntryFields { command, args, env, transport, url, headers, port: _ } = entry_fields;
    if let Some(other) = command.as_deref().filter(|it| matches!(*it, "python" | "node")) {
        return Err(format!("an agent file cannot start '{other}'; register the plugin's folder instead"));
    }
    let label = manifest.name.unwrap_or_else(|| "server".to_owned());
    let strings = |pairs: Vec<(String, MaskedString)>| -> Vec<(String, String)> {
        pairs.into_iter().map(|(name, it)| (name, it.expose().to_owned())).collect()
    };
    let mut args: Vec<String> = args.into_iter().map(|it| it.expose().to_owned()).collect();
    // wharf adds `-y` anyway. Show it, so that the entry matches the command that runs.
    if command.as_deref() == Some("npx") && !args.iter().any(|it| it == "-y") {
        args.insert(0, "-y".to_owned());
    }
    Ok(Suggestion {
        name: short_name(&label),
        description: manifest.description.filter(|it| !it.trim().is_empty()),
        server: server.unwrap_or(label),
        command: command.map(|it| (it, args)),
        env: strings(env),
        remote: transport.zip(url).map(|(transport, url)| (transport, url.expose().to_owned())),
        headers: strings(headers),
        variables: filler.used.into_iter().collect(),
        optional: filler.optional.into_iter().collect(),
    })
}

/// Returns the last part of a label: `io.github.somebody/weather` becomes `weather`.
fn short_name(label: &str) -> String {
    let last = label.rsplit('/').find(|it| !it.trim().is_empty()).unwrap_or("server");
    let name: String =
        last.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '-' }).collect();
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_values_become_variables() {
        let text = r#"{ "name": "io.example/weather", "packages": [{
            "registryType": "npm", "identifier": "@example/weather", "version": "1.0.0",
            "packageArguments": [
                { "type": "named", "name": "--api-key", "isRequired": true, "isSecret": true },
                { "type": "named", "name": "--unit", "default": "${c}" },
                { "type": "positional", "valueHint": "city" }],
            "environmentVariables": [
                { "name": "TOKEN", "value": "Bearer {secret}", "variables": { "secret": { "isRequired": true } } },
                { "name": "LEVEL", "default": "info" }, { "name": "NOBODY" }] }] }"#;
        let found = suggest(text.as_bytes()).expect("it can be used");
        let (command, args) = found.command.expect("a process");
        assert_eq!((found.name.as_str(), command.as_str()), ("weather", "npx"));
        assert_eq!(args, ["-y", "@example/weather@1.0.0", "--api-key", "${API_KEY}", "--unit", "$${c}"]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(found.env, [pair("TOKEN", "Bearer ${SECRET}"), pair("LEVEL", "info")]);
        assert_eq!(found.variables, ["API_KEY", "SECRET"]);
        assert_eq!(found.optional, ["CITY", "NOBODY"]);
    }

    #[test]
    fn short_name_is_the_last_part() {
        for (label, expected) in [
            ("io.example/weather", "weather"),
            ("@scope/a.b", "a-b"),
            ("x", "x"),
            ("", "server"),
            ("a/", "a"),
        ] {
            assert_eq!(short_name(label), expected);
        }
    }
}
