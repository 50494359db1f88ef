//! Writes entries of an agent file. Uses plain scalars where YAML cannot misread them, and double quotes elsewhere.

use super::note::is_invisible;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Write};

/// One entry of `tools:`, with its keys in insertion order.
#[derive(Debug, Default)]
pub(super) struct YamlEntry(Vec<(&'static str, YamlValue)>);

#[derive(Debug)]
enum YamlValue {
    Text(String),
    Number(u64),
    Texts(Vec<String>),
    Map(Vec<(String, String)>),
}

impl YamlEntry {
    pub(super) fn text(&mut self, key: &'static str, text: impl Into<String>) {
        self.0.push((key, YamlValue::Text(text.into())));
    }

    pub(super) fn number(&mut self, key: &'static str, number: u64) {
        self.0.push((key, YamlValue::Number(number)));
    }

    pub(super) fn texts(&mut self, key: &'static str, texts: Vec<String>) {
        self.0.push((key, YamlValue::Texts(texts)));
    }

    /// Adds a map, unless it is empty. Of duplicate names, the first wins.
    pub(super) fn map(&mut self, key: &'static str, mut pairs: Vec<(String, String)>) {
        let mut seen = BTreeSet::new();
        pairs.retain(|(name, _)| seen.insert(name.clone()));
        if !pairs.is_empty() {
            self.0.push((key, YamlValue::Map(pairs)));
        }
    }

    /// Removes a key.
    pub(super) fn remove(&mut self, key: &str) {
        self.0.retain(|(it, _)| *it != key);
    }

    /// Returns the entry as JSON.
    pub(super) fn to_json(&self) -> Value {
        let value = |it: &YamlValue| match it {
            YamlValue::Text(text) => json!(text),
            YamlValue::Number(number) => json!(number),
            YamlValue::Texts(texts) => json!(texts),
            YamlValue::Map(pairs) => pairs.iter().map(|(key, it)| (key.clone(), json!(it))).collect(),
        };
        self.0.iter().map(|(key, it)| ((*key).to_owned(), value(it))).collect()
    }

    /// Returns the lines of the entry, as a list item indented by two spaces.
    pub(super) fn render(&self) -> String {
        let mut out = String::new();
        for (index, (key, value)) in self.0.iter().enumerate() {
            let dash = if index == 0 { "  - " } else { "    " };
            // Writing to a string cannot fail.
            _ = match value {
                YamlValue::Text(text) => writeln!(out, "{dash}{key}: {}", scalar(text)),
                YamlValue::Number(number) => writeln!(out, "{dash}{key}: {number}"),
                YamlValue::Texts(texts) if texts.is_empty() => writeln!(out, "{dash}{key}: []"),
                YamlValue::Texts(texts) => {
                    let items = texts.iter().map(|it| format!("      - {}\n", scalar(it)));
                    write!(out, "{dash}{key}:\n{}", items.collect::<String>())
                }
                YamlValue::Map(pairs) => {
                    let line = |(key, value): &(String, String)| {
                        format!("      {}: {}\n", scalar(key), scalar(value))
                    };
                    write!(out, "{dash}{key}:\n{}", pairs.iter().map(line).collect::<String>())
                }
            };
        }
        out
    }
}

/// Formats a string as a YAML scalar.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// Checks whether this loader, and one with YAML 1.1 rules, would read the unquoted text as this string.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 12] =
        ["null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan", "="];
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/')
        || text.starts_with("./")
        || text.starts_with("../")
        || text.starts_with(".env.");
    let fits = |c: char| c.is_alphanumeric() || " _-./@+=,~%()?&:".contains(c);
    starts_well
        && text.chars().all(fits)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || is_invisible(c) => {
                _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_config::{Endpoint, Env, load};

    #[test]
    fn scalars_are_quoted_if_necessary() {
        for (text, expected) in [
            ("npx", "npx"),
            ("/srv/my data", "/srv/my data"),
            ("./data", "./data"),
            (".env.github", ".env.github"),
            ("https://h:8080/mcp?a=b&c=d", "https://h:8080/mcp?a=b&c=d"),
            ("The x server (y)", "The x server (y)"),
            ("-y", "\"-y\""),
            ("@scope/name", "\"@scope/name\""),
            ("", "\"\""),
            ("8080", "\"8080\""),
            ("1e3", "\"1e3\""),
            ("TRUE", "\"TRUE\""),
            ("null", "\"null\""),
            ("~", "\"~\""),
            ("on", "\"on\""),
            ("a: b", "\"a: b\""),
            ("a:", "\"a:\""),
            ("a #b", "\"a #b\""),
            (" a", "\" a\""),
            ("a ", "\"a \""),
            ("${X}", "\"${X}\""),
            ("<<", "\"<<\""),
            ("C:\\x", "\"C:\\\\x\""),
            ("a\nb", "\"a\\nb\""),
            ("a\u{7f}\u{85}\u{2028}", "\"a\\u007F\\u0085\\u2028\""),
        ] {
            assert_eq!(scalar(text), expected);
        }
    }

    /// The loader reads back every text unchanged.
    #[test]
    fn loader_reads_back_every_text() {
        let alphabet: Vec<char> =
            "aZ_0 9.-+:#@!&*?|>%'\"`\\/,[]{}=~<\n\t\r\u{0}\u{1b}\u{7f}\u{85}\u{a0}\u{2028}\u{feff}ü日😀$"
                .chars()
                .collect();
        let mut seed = 1_u64;
        let mut next = |most: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % most
        };
        let mut env = Env::bare();
        env.grants.commands.push("/bin/x".into());
        for _ in 0..3000 {
            let text: String = (0..next(6)).map(|_| alphabet[next(alphabet.len())]).collect();
            if text.contains("${")
                || text.contains('\0')
                || matches!(&*text, "." | "..")
                || text.starts_with("./")
                || text.starts_with("../")
            {
                continue;
            }
            let mut entry = YamlEntry::default();
            entry.text("name", "x");
            entry.text("description", "d");
            entry.text("type", "mcp");
            entry.text("server", "s");
            entry.text("command", "/bin/x");
            entry.texts("args", vec![text.clone()]);
            entry.map("env", vec![(format!("E{}", text.replace('=', "")), text.clone())]);
            let yaml = format!("tools:\n{}", entry.render());
            let (plan, diagnostics) = load(&yaml, &env);
            let plan = plan.unwrap_or_else(|| panic!("{yaml}{:?}", diagnostics.items()));
            let Endpoint::Stdio(launch) = &plan.sources[0].endpoint else { panic!("stdio") };
            assert_eq!(launch.args[0].value.expose(), text, "{yaml}");
            let read = &launch.env.0[&format!("E{}", text.replace('=', ""))];
            assert_eq!(read.value.expose(), text, "{yaml}");
        }
    }
}
