//! Collects the values of one server for its env file.

use super::{EnvFile, checker, note::printable, template::is_name};
use wharf_config::Env;

/// Names that usually have another meaning in the environment of a child process.
const COMMON_VARIABLES: [&str; 12] = [
    "DISPLAY", "EDITOR", "HOST", "HOSTNAME", "LANG", "LOGNAME", "PWD", "TERM", "TMPDIR", "TZ", "USER",
    "USERNAME",
];

/// Writes the env file of one server: its values, under their variable names.
pub(super) struct EnvFileWriter<'a> {
    server: &'a str,
    /// The name of the env file to write.
    pub(super) file: &'a str,
    env: &'a Env,
    /// The text of the client's own env file.
    copied: String,
    lines: Vec<EnvLine>,
}

struct EnvLine {
    name: String,
    value: String,
    comment: String,
}

impl<'a> EnvFileWriter<'a> {
    pub(super) fn new(server: &'a str, file: &'a str, env: &'a Env) -> EnvFileWriter<'a> {
        EnvFileWriter { server, file, env, copied: String::new(), lines: Vec::new() }
    }

    /// Stores a value under exactly this name, because the server reads it.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.push_line(name.to_owned(), value, "");
    }

    /// Copies the lines of the client's env file. The values of this writer win, as they do in the client.
    pub(super) fn copy(&mut self, text: String) {
        self.copied = text;
    }

    /// Stores a value under a new name and returns the name. The environment must not have that name, or it would
    /// override the value.
    pub(super) fn add(&mut self, what: &str, value: &str) -> String {
        let base = format!("{}_{}", to_variable_name(self.server), to_variable_name(what));
        let before = self.lines.iter().find(|it| it.value == value && it.name.ends_with(&base));
        if let Some(line) = before {
            return line.name.clone();
        }
        let name = self.free_name(&base, "MCP", |name| !self.env.variables.contains_key(name));
        self.push_line(name.clone(), value, "");
        name
    }

    /// Returns the variable name for an input. It may already be set in the environment, because that is the usual
    /// way to fill in an input.
    pub(super) fn name_of_input(&self, id: &str) -> String {
        let asked = |it: &EnvLine| it.comment.starts_with(&comment_marker(id));
        if let Some(line) = self.lines.iter().find(|it| asked(it)) {
            return line.name.clone();
        }
        self.free_name(&to_variable_name(id), "INPUT", |name| !COMMON_VARIABLES.contains(&name))
    }

    /// Stores the default of an input, or an empty value for the user to fill in.
    pub(super) fn set_input(&mut self, name: &str, id: &str, value: &str, comment: &str) {
        if !self.has(name) {
            self.push_line(name.to_owned(), value, &format!("{} {comment}", comment_marker(id)));
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.lines.iter().any(|it| it.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|it| !it.value.is_empty()).map(|it| it.name.as_str())
    }

    /// Returns the names whose values the user must fill in.
    pub(super) fn empty_names(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|it| it.value.is_empty()).map(|it| it.name.as_str())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn env_file(&self) -> EnvFile {
        let server = printable(self.server);
        let mut text =
            format!("# Values for `{server}`. They may be secret: keep this file out of version control.\n");
        if !self.copied.is_empty() {
            text.push_str(&format!("\n{}\n\n", self.copied.trim_end()));
        }
        for EnvLine { name, value, comment } in &self.lines {
            if !comment.is_empty() {
                text.push_str(&format!("\n# {}\n", printable(comment.trim())));
            }
            text.push_str(&format!("{name}={}\n", quoted(value)));
        }
        EnvFile { name: self.file.to_owned(), text }
    }

    fn push_line(&mut self, name: String, value: &str, comment: &str) {
        // An env file cannot contain NUL; neither can an environment or a header.
        let value = value.replace('\0', "");
        self.lines.push(EnvLine { name, value, comment: comment.to_owned() });
    }

    /// Returns the first of `BASE`, `PREFIX_BASE`, `PREFIX_BASE_2`, … that is allowed and unused.
    fn free_name(&self, base: &str, prefix: &str, fits: impl Fn(&str) -> bool) -> String {
        let numbered = (2..).map(|number| format!("{prefix}_{base}_{number}"));
        let names = [base.to_owned(), format!("{prefix}_{base}")].into_iter().chain(numbered);
        let is_free = |name: &String| {
            is_name(name)
                && !self.has(name)
                && fits(name)
                && checker::refused_names(&[name], self.env).is_empty()
        };
        // The numbers are unbounded, so a free name is always found.
        names.into_iter().find(is_free).unwrap_or_default()
    }
}

/// Returns the start of an input's comment, which identifies the input.
fn comment_marker(id: &str) -> String {
    format!("`{id}`:")
}

/// Converts a text to capital letters, digits and `_`.
fn to_variable_name(text: &str) -> String {
    let letters: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let words: Vec<&str> = letters.split('_').filter(|it| !it.is_empty()).collect();
    words.join("_")
}

/// Quotes a value for an env file.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,~?&".contains(c);
    if value.chars().all(is_plain) {
        return value.to_owned();
    }
    if !value.contains(['\'', '\n', '\r']) {
        return format!("'{value}'");
    }
    let mut out = String::from('"');
    for c in value.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '"' | '\\' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_unused() {
        let mut env = Env::bare();
        env.variables.insert("GITHUB_TOKEN".into(), "x".into());
        let mut writer = EnvFileWriter::new("github", ".env.github", &env);
        writer.set("API_KEY", "one");
        assert_eq!(writer.add("--api-key", "two"), "GITHUB_API_KEY");
        assert_eq!(writer.add("--api-key", "two"), "GITHUB_API_KEY");
        assert_eq!(writer.add("--api-key", "three"), "MCP_GITHUB_API_KEY");
        assert_eq!(writer.add("--api-key", "four"), "MCP_GITHUB_API_KEY_2");
        assert_eq!(writer.add("token", "five"), "MCP_GITHUB_TOKEN");
        assert_eq!(writer.name_of_input("github-token"), "GITHUB_TOKEN");
        assert_eq!(writer.name_of_input("api_key"), "INPUT_API_KEY");
        assert_eq!(writer.name_of_input("path"), "INPUT_PATH");
        assert_eq!(writer.name_of_input("user"), "INPUT_USER");
        assert_eq!(writer.name_of_input("1st"), "INPUT_1ST");
        let mut writer = EnvFileWriter::new("git", ".env.git", &env);
        assert_eq!(writer.add("login", "x"), "MCP_GIT_LOGIN");
    }

    #[test]
    fn repeated_input_keeps_its_name() {
        let env = Env::bare();
        let mut writer = EnvFileWriter::new("a", ".env.a", &env);
        let name = writer.name_of_input("key");
        writer.set_input(&name, "key", "", "The key\nof it");
        assert_eq!(writer.name_of_input("key"), name);
        writer.set_input(&name, "key", "", "");
        assert_eq!(writer.empty_names().collect::<Vec<_>>(), ["KEY"]);
        assert_eq!(
            writer.env_file().text,
            "# Values for `a`. They may be secret: keep this file out of version control.\n\n# `key`: The key\\nof it\nKEY=\n"
        );
    }

    #[test]
    fn values_are_quoted() {
        for (value, expected) in [
            ("abc", "abc"),
            ("", ""),
            ("a b", "'a b'"),
            ("a#b", "'a#b'"),
            ("a\"$b\\", "'a\"$b\\'"),
            ("it's $1", "\"it's \\$1\""),
            ("a\nb\r", "\"a\\nb\\r\""),
        ] {
            assert_eq!(quoted(value), expected);
        }
    }
}
