//! Finds the variables that a server reports as missing when it exits, and suggests how to set them.
//!
//! Servers word this in different ways (`Error: BRAVE_API_KEY environment variable is required`). The common pattern
//! is an uppercase name on a line that asks for something.

use wharf_config::{ChildEnv, EnvOrigin, Launch, Source};

/// Lowercase words that mark a line as asking for something.
const REQUEST_PHRASES: [&str; 13] = [
    "required",
    "missing",
    "not set",
    "must be set",
    "please set",
    "environment variable",
    "env var",
    "provide",
    "or pass ",
    "keyerror",
    "undefined",
    "not defined",
    "export ",
];

/// Prefixes of error codes and launcher settings, which are not variables of a server.
const NOT_VARIABLES: [&str; 4] = ["ERR_", "NODE_", "NPM_", "UV_"];

/// Variables that a server reports as missing, from the first line that asks for any.
pub(super) struct MissingVariables<'a> {
    names: Vec<&'a str>,
    /// Variables that wharf's own environment has but does not pass on.
    inheritable: Vec<&'a str>,
    /// Whether one of the variables is enough.
    any: bool,
}

impl<'a> MissingVariables<'a> {
    pub(super) fn find(lines: &[&'a str], launch: &Launch) -> Option<MissingVariables<'a>> {
        let (line, names) = lines
            .iter()
            .filter(|line| is_request(line))
            .map(|line| (line, names(line, &launch.env)))
            .find(|(_, names)| !names.is_empty())?;
        let inheritable = names.iter().copied().filter(|it| launch.withheld.contains(*it)).collect();
        Some(MissingVariables { names, inheritable, any: line.contains(" or ") })
    }

    /// Returns whether wharf's own environment has one of them.
    pub(super) fn can_inherit(&self) -> bool {
        !self.inheritable.is_empty()
    }

    /// Returns the names, formatted for a sentence.
    pub(super) fn variables(&self) -> String {
        let names = if self.can_inherit() { &self.inheritable } else { &self.names };
        let quoted: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
        quoted.join(if self.any { " or " } else { " and " })
    }

    /// Returns the exact change to the entry or its env file that sets these variables.
    pub(super) fn remedy(&self, source: &Source, launch: &Launch) -> String {
        let name = source.name.shown();
        if self.can_inherit() {
            let inherited = inherited(&launch.env);
            let verb = if inherited.is_empty() { "add" } else { "change the line to" };
            let all: Vec<&str> = inherited.into_iter().chain(self.inheritable.iter().copied()).collect();
            return format!("{verb} `inherit_env: [{}]` in the entry `{name}`", all.join(", "));
        }
        let wanted = if self.any { &self.names[..1] } else { &self.names[..] };
        if let Some(file) = env_file(&launch.env) {
            let lines: Vec<String> = wanted.iter().map(|it| format!("`{it}=VALUE`")).collect();
            return format!("add {} to `{file}`", lines.join(" and "));
        }
        let pairs: Vec<String> = wanted.iter().map(|it| format!("{it}: \"${{{it}}}\"")).collect();
        let pairs = pairs.join(", ");
        match source.sets_key("env") {
            true => format!("add `{pairs}` to `env` in the entry `{name}`, and set it where wharf runs"),
            false => format!("add `env: {{{pairs}}}` to the entry `{name}`, and set it where wharf runs"),
        }
    }
}

fn is_request(line: &str) -> bool {
    let line = line.to_lowercase();
    REQUEST_PHRASES.iter().any(|it| line.contains(it))
}

/// Returns the variables that a line names and the child does not have, without duplicates.
fn names<'a>(line: &'a str, env: &ChildEnv) -> Vec<&'a str> {
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let has = |name: &str| env.0.get(name).is_some_and(|it| !it.value.expose().is_empty());
    let mut names = Vec::new();
    for name in words.filter(|it| is_variable(it) && !has(it)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn is_variable(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.contains('_')
        && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && !NOT_VARIABLES.iter().any(|it| word.starts_with(it))
}

fn inherited(env: &ChildEnv) -> Vec<&str> {
    let inherited = env.0.iter().filter(|(_, it)| it.origin == EnvOrigin::Inherited);
    inherited.map(|(name, _)| name.as_str()).collect()
}

fn env_file(env: &ChildEnv) -> Option<&str> {
    env.0.values().find_map(|it| match &it.origin {
        EnvOrigin::EnvFile(file) => Some(file.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uppercase_names_on_a_request_line_are_variables() {
        for (line, expected) in [
            ("Error: BRAVE_API_KEY environment variable is required", &["BRAVE_API_KEY"][..]),
            ("Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID", &["SLACK_BOT_TOKEN", "SLACK_TEAM_ID"]),
            ("KeyError: 'NOTES_TOKEN'", &["NOTES_TOKEN"]),
            ("or pass `--access-token` / `SENTRY_ACCESS_TOKEN`.", &["SENTRY_ACCESS_TOKEN"]),
            ("listening with LOG_LEVEL debug", &[]),
            ("code: 'ERR_MODULE_NOT_FOUND', a module is missing", &[]),
            ("a key is required", &[]),
        ] {
            let found = if is_request(line) { names(line, &ChildEnv::default()) } else { Vec::new() };
            assert_eq!(found, expected, "{line}");
        }
    }
}
