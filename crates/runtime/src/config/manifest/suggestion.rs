//! What a manifest suggests to somebody who writes an agent file: an entry in which values that have to be given are
//! named as variables.

use super::{Filler, Manifest, Offer, Run, Values, argv::REMOTE};
use crate::text::Text;

/// An entry of `tools:` that is still to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// What it is called, as far as the manifest knows.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The package, or what the manifest calls the server.
    pub server: String,
    /// The command and its arguments, for a server that is a process.
    pub command: Option<(String, Vec<String>)>,
    /// The environment of that process.
    pub env: Vec<(String, String)>,
    /// The transport and the address, for one that is not.
    pub remote: Option<(&'static str, String)>,
    /// What is sent there with every request.
    pub headers: Vec<(String, String)>,
    /// The variables that the entry names, which have to be set.
    pub variables: Vec<String>,
    /// What could be given beside them and is left out.
    pub optional: Vec<String>,
}

/// Reads a manifest. The error is one sentence that reads on from "the manifest cannot be used".
pub fn suggest(manifest: &[u8]) -> Result<Suggestion, String> {
    if manifest.len() as u64 > super::LONGEST {
        return Err(format!("it is larger than {} MiB", super::LONGEST / 1024 / 1024));
    }
    let manifest = Manifest::read(manifest)?;
    let mut filler = Filler::new(Values::Named);
    let offer = manifest.offer(None, Some("stdio"));
    let (server, run) = match offer.or_else(|why| manifest.offer(None, Some(REMOTE)).map_err(|_| why))? {
        Offer::Remote(remote) => (None, remote.run(&mut filler)?),
        Offer::Package(package, _) => {
            let server = package.identifier.clone().or_else(|| package.command.first().cloned());
            (server, package.run(None, &mut filler, Vec::new())?)
        }
    };
    let Run { command, args, env, transport, url, headers, serves: _ } = run;
    if let Some(other) = command.as_deref().filter(|it| matches!(*it, "python" | "node")) {
        return Err(format!("an agent file does not start '{other}'; register the plugin's folder instead"));
    }
    let label = manifest.name.unwrap_or_else(|| "server".to_owned());
    let strings = |pairs: Vec<(String, Text)>| -> Vec<(String, String)> {
        pairs.into_iter().map(|(name, it)| (name, it.expose().to_owned())).collect()
    };
    let mut args: Vec<String> = args.into_iter().map(|it| it.expose().to_owned()).collect();
    // So that it reads as what is run.
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
        optional: filler.open.into_iter().collect(),
    })
}

/// `io.github.somebody/weather` is `weather`.
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
    fn values_are_named() {
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
    fn names() {
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
